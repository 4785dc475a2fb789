#include "exec/fields.h"

#include <algorithm>

#include "core/host_view.h"
#include "core/text.h"

namespace brisk::exec {

size_t find_field(const std::vector<Field>& fields, const std::string& name, const char* refusal) {
  const auto found = std::find_if(fields.begin(), fields.end(), [&](const Field& field) { return field.name == name; });
  if (found != fields.end()) return static_cast<size_t>(found - fields.begin());
  std::vector<std::string> names;
  std::string list;
  for (const Field& field : fields) {
    names.push_back(field.name);
    list += (list.empty() ? "" : ", ") + field.name;
  }
  const std::string near = closest(name, names);
  throw Error(ErrorCode::data, cat("\"", name, "\""),
              cat(refusal, list, near.empty() ? "" : " (did you mean " + near + "?)"));
}

void check_rows_of(const Field& field, const ConstView& view) {
  const bool shape_fits = view.shape().rank() == field.shape.rank() + 1 &&
                          std::equal(field.shape.begin(), field.shape.end(), view.shape().begin() + 1);
  const bool fits = shape_fits && view.dtype() == field.dtype;
  if (fits && view.raw() != nullptr && view.device() == cpu()) return;
  const std::string quoted = cat("\"", field.name, "\"");
  if (!fits) {
    std::string wanted = "[N";
    for (const int64_t size : field.shape) wanted += ", " + std::to_string(size);
    const std::string remedy =
        shape_fits ? cat("; convert its elements to ", field.dtype == DType::i64 ? "int64_t" : brisk::name(field.dtype))
                   : std::string();
    throw Error(ErrorCode::data, quoted,
                cat("must be ", wanted, "] ", brisk::name(field.dtype), ", got ", view.shape(), " ",
                    brisk::name(view.dtype()), remedy));
  }
  check_host(quoted, view);
}

}  // namespace brisk::exec
