// Copies each unit's range of the output piece by piece.
#include "backend/cpu/kernels/shape.h"

#include <algorithm>
#include <cstring>

namespace brisk::backend::cpu::BRISK_ISA {

void assemble_rows(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& rows = *static_cast<const RowParts*>(parameters);
  const int64_t end = std::min(last * rows.unit, rows.total);
  char* out = operands.output<char>(0);
  for (int64_t at = first * rows.unit; at < end;) {
    const int64_t row = at / rows.row;
    const int64_t offset = at % rows.row;
    size_t p = 0;
    while (rows.parts[p].first + rows.parts[p].bytes <= offset) ++p;
    const RowPart& part = rows.parts[p];
    const int64_t skipped = offset - part.first;
    const auto bytes = static_cast<size_t>(std::min(part.bytes - skipped, end - at));
    if (part.input < 0) {
      std::memset(out + at, 0, bytes);
    } else {
      std::memcpy(out + at, operands.input<char>(part.input) + row * part.source_row + part.source_first + skipped,
                  bytes);
    }
    at += static_cast<int64_t>(bytes);
  }
}

}  // namespace brisk::backend::cpu::BRISK_ISA
