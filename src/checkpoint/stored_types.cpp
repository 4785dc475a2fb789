// Element types by their names in files.
#include "checkpoint/stored_types.h"

namespace brisk::checkpoint {
namespace {

// In the order of the format's reference, which is the order of its files, backwards.
constexpr StoredType kTypes[] = {{"BOOL", 8, 0},    {"F4", 4, 1},          {"F6_E2M3", 6, 2},      {"F6_E3M2", 6, 3},
                                 {"U8", 8, 4},      {"I8", 8, 5},          {"F8_E5M2", 8, 6},      {"F8_E4M3", 8, 7},
                                 {"F8_E8M0", 8, 8}, {"F8_E4M3FNUZ", 8, 9}, {"F8_E5M2FNUZ", 8, 10}, {"I16", 16, 11},
                                 {"U16", 16, 12},   {"F16", 16, 13},       {"BF16", 16, 14},       {"I32", 32, 15},
                                 {"U32", 32, 16},   {"F32", 32, 17},       {"C64", 64, 18},        {"F64", 64, 19},
                                 {"I64", 64, 20},   {"U64", 64, 21}};

}  // namespace

const StoredType* find_stored_type(std::string_view name) {
  for (const StoredType& type : kTypes) {
    if (name == type.name) return &type;
  }
  return nullptr;
}

std::string stored_type_names() {
  std::string out;
  for (const StoredType& type : kTypes) out += (out.empty() ? "" : ", ") + std::string(type.name);
  return out;
}

const char* stored_name(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "F32";
    case DType::f16:
      return "F16";
    case DType::bf16:
      return "BF16";
    case DType::i32:
      return "I32";
    case DType::i64:
      return "I64";
    case DType::u8:
      return "U8";
  }
  return "";
}

bool is_stored_float(std::string_view dtype) {
  return dtype == "F32" || dtype == "F16" || dtype == "BF16" || dtype == "F64";
}

}  // namespace brisk::checkpoint
