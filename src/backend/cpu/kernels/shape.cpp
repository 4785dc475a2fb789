// Each unit copies its range of the output piece by piece.
#include "backend/cpu/kernels/shape.h"

#include <algorithm>
#include <cstring>

namespace brisk::backend::cpu::BRISK_ISA {
namespace {

/// Copies output chunks [first, last). kBytes: the chunk's size, or 0 when it has another one.
template <size_t kBytes>
void copy_chunks(const Permutation& p, const char* in, char* out, int64_t first, int64_t last) {
  const auto bytes = static_cast<size_t>(p.chunk);
  const int64_t inner = p.dims.back(), stride = p.strides.back();
  for (int64_t at = first; at < last;) {
    int64_t rest = at / inner, offset = at % inner * stride;
    for (size_t i = p.dims.size() - 1; i-- > 0; rest /= p.dims[i]) offset += rest % p.dims[i] * p.strides[i];
    for (const int64_t end = std::min(last, at + inner - at % inner); at < end; ++at, offset += stride) {
      std::memcpy(out + at * p.chunk, in + offset, kBytes > 0 ? kBytes : bytes);
    }
  }
}

}  // namespace

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

void permute(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& p = *static_cast<const Permutation*>(parameters);
  const int64_t begin = first * p.per_unit, end = std::min(p.chunks, last * p.per_unit);
  const auto* in = operands.input<char>(0);
  auto* out = operands.output<char>(0);
  switch (p.chunk) {
    case 4:
      return copy_chunks<4>(p, in, out, begin, end);
    case 8:
      return copy_chunks<8>(p, in, out, begin, end);
    case 16:
      return copy_chunks<16>(p, in, out, begin, end);
    case 32:
      return copy_chunks<32>(p, in, out, begin, end);
    case 64:
      return copy_chunks<64>(p, in, out, begin, end);
    default:
      return copy_chunks<0>(p, in, out, begin, end);
  }
}

void pad(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& p = *static_cast<const Padding*>(parameters);
  for (int64_t r = first * p.per_unit; r < std::min(p.total, last * p.per_unit); ++r) {
    float* out = operands.output<float>(0) + r * p.padded_row;
    float* const end = out + p.padded_row;
    const int64_t row = r % p.padded_rows - p.above;
    if (row >= 0 && row < p.rows) {
      const float* in = operands.input<float>(0) + (r / p.padded_rows * p.rows + row) * p.row;
      out = std::copy_n(in, p.row, std::fill_n(out, p.before, p.value));
    }
    std::fill(out, end, p.value);
  }
}

void put_constant(const void* parameters, const Operands& operands, int64_t, int64_t) {
  const auto& values = static_cast<const Constant*>(parameters)->values;
  std::copy(values.begin(), values.end(), operands.output<float>(0));
}

}  // namespace brisk::backend::cpu::BRISK_ISA
