// A library with the functions of cuBLASLt that Brisk uses: it refuses arguments that the true one would refuse, and
// multiplies on the host when the emulated stream gets there.
#include "simt/fake_cublaslt.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <deque>
#include <map>

#include "backend/cuda/runtime/cublaslt.h"

#define FAKE_API extern "C" __attribute__((visibility("default")))

namespace lt = brisk::backend::cuda::cublaslt;

namespace brisk::backend::cuda::cublaslt {

struct Context {};
struct Description {
  int32_t transpose_a = 0, transpose_b = 0;
  uint32_t epilogue = kEpilogueNone;
  const void* bias = nullptr;
};
struct Layout {
  cudaDataType type;
  uint64_t rows, columns;
  int64_t leading;
};
struct Preference {
  uint64_t workspace_bytes = 0;
  std::map<int, uint32_t> others;
};

}  // namespace brisk::backend::cuda::cublaslt

namespace {

brisk::test::FakeCublasLt fake;

/// kInvalidValue, and why, unless it holds.
int demand(bool holds, const char* what) {
  if (holds) return lt::kSuccess;
  if (fake.complaint.empty()) fake.complaint = what;
  return lt::kInvalidValue;
}

int end(const char* function, int status = lt::kSuccess) { return fake.fails == function ? 13 : status; }

template <class T>
int make(const char* function, T** made, T value) {
  *made = new T(value);
  ++fake.live;
  return end(function);
}

template <class T>
int destroy(T* value) {
  delete value;
  --fake.live;
  return lt::kSuccess;
}

template <class T>
int set(T& field, const void* value, size_t bytes) {
  if (bytes != sizeof(T)) return demand(false, "bytes of an attribute");
  field = *static_cast<const T*>(value);
  return lt::kSuccess;
}

/// A matrix column by column.
struct Matrix {
  lt::Layout layout;
  bool transposed;
  char* data;

  uint64_t rows() const { return transposed ? layout.columns : layout.rows; }
  uint64_t columns() const { return transposed ? layout.rows : layout.columns; }
  size_t at(uint64_t row, uint64_t column) const {
    if (transposed) std::swap(row, column);
    return row + column * static_cast<uint64_t>(layout.leading);
  }
  float get(uint64_t row, uint64_t column) const {
    const size_t i = at(row, column);
    if (layout.type == CUDA_R_16F) return __half2float(reinterpret_cast<const __half*>(data)[i]);
    if (layout.type == CUDA_R_16BF) return __bfloat162float(reinterpret_cast<const __nv_bfloat16*>(data)[i]);
    return reinterpret_cast<const float*>(data)[i];
  }
  void put(uint64_t row, uint64_t column, float value) const {
    const size_t i = at(row, column);
    if (layout.type == CUDA_R_16F) {
      reinterpret_cast<__half*>(data)[i] = __float2half_rn(value);
    } else if (layout.type == CUDA_R_16BF) {
      reinterpret_cast<__nv_bfloat16*>(data)[i] = __float2bfloat16_rn(value);
    } else {
      reinterpret_cast<float*>(data)[i] = value;
    }
  }
};

struct Call {
  Matrix a, b, d;
  const float* bias;
  float alpha, beta;
  char* workspace;
  size_t workspace_bytes;
};

void multiply(void* argument) {
  const Call& call = *static_cast<const Call*>(argument);
  for (size_t i = 0; i < call.workspace_bytes; i += 4096) call.workspace[i] = 1;  // nothing else may lie there
  for (uint64_t column = 0; column < call.d.columns(); ++column)
    for (uint64_t row = 0; row < call.d.rows(); ++row) {
      float sum = 0;
      for (uint64_t k = 0; k < call.a.columns(); ++k) sum += call.a.get(row, k) * call.b.get(k, column);
      sum *= call.alpha;
      if (call.beta != 0) sum += call.beta * call.d.get(row, column);  // else what lies there is not read
      if (call.bias) sum += call.bias[row];
      call.d.put(row, column, sum);
    }
}

int check_problem(const lt::Description& how, const lt::Layout& a, const lt::Layout& b, const lt::Layout& d) {
  const Matrix left{a, how.transpose_a != 0, nullptr}, right{b, how.transpose_b != 0, nullptr};
  if (int bad =
          demand(left.columns() == right.rows() && left.rows() == d.rows && right.columns() == d.columns, "sizes"))
    return bad;
  if (int bad = demand(a.type == b.type && (d.type == a.type || d.type == CUDA_R_32F), "types")) return bad;
  if (how.epilogue == lt::kEpilogueNone) return lt::kSuccess;
  if (int bad = demand(how.epilogue == lt::kEpilogueBias && how.bias != nullptr, "bias")) return bad;
  return demand(d.type == CUDA_R_32F, "a bias of f32 beside 16 bits");
}

}  // namespace

FAKE_API brisk::test::FakeCublasLt* fake_cublaslt() { return &fake; }

FAKE_API size_t cublasLtGetVersion() { return fake.version; }
FAKE_API const char* cublasLtGetStatusString(int status) { return status == 13 ? "made to fail" : "refused"; }
FAKE_API int cublasLtCreate(lt::Context** made) {
  static lt::Context only;
  *made = &only;
  return end("cublasLtCreate");
}

FAKE_API int cublasLtMatmulDescCreate(lt::Description** made, int compute, cudaDataType scale) {
  const int status = make("cublasLtMatmulDescCreate", made, lt::Description());
  return status ? status : demand(compute == lt::kComputeF32 && scale == CUDA_R_32F, "computing in f32");
}
FAKE_API int cublasLtMatmulDescDestroy(lt::Description* value) { return destroy(value); }
FAKE_API int cublasLtMatmulDescSetAttribute(lt::Description* how, int attribute, const void* value, size_t bytes) {
  if (attribute == lt::kTransposeA) return set(how->transpose_a, value, bytes);
  if (attribute == lt::kTransposeB) return set(how->transpose_b, value, bytes);
  if (attribute == lt::kEpilogue) return set(how->epilogue, value, bytes);
  return attribute == lt::kBiasPointer ? set(how->bias, value, bytes) : demand(false, "attribute of a product");
}

FAKE_API int cublasLtMatrixLayoutCreate(lt::Layout** made, cudaDataType type, uint64_t rows, uint64_t columns,
                                        int64_t leading) {
  const int status = make("cublasLtMatrixLayoutCreate", made, lt::Layout{type, rows, columns, leading});
  return status ? status
                : demand(rows > 0 && columns > 0 && leading >= static_cast<int64_t>(rows), "leading dimension");
}
FAKE_API int cublasLtMatrixLayoutDestroy(lt::Layout* value) { return destroy(value); }

FAKE_API int cublasLtMatmulPreferenceCreate(lt::Preference** made) {
  return make("cublasLtMatmulPreferenceCreate", made, lt::Preference());
}
FAKE_API int cublasLtMatmulPreferenceDestroy(lt::Preference* value) { return destroy(value); }
FAKE_API int cublasLtMatmulPreferenceSetAttribute(lt::Preference* preference, int attribute, const void* value,
                                                  size_t bytes) {
  if (attribute == lt::kMaxWorkspaceBytes) return set(preference->workspace_bytes, value, bytes);
  return set(preference->others[attribute], value, bytes);
}

FAKE_API int cublasLtMatmulAlgoGetHeuristic(lt::Context*, lt::Description* how, lt::Layout* a, lt::Layout* b,
                                            lt::Layout* c, lt::Layout* d, lt::Preference* preference, int wanted,
                                            lt::Heuristic* results, int* found) {
  const std::map<int, uint32_t> others = {{3, lt::kReductionInComputeType}, {5, 16}, {6, 16}, {7, 16}, {8, 16}};
  if (int bad = check_problem(*how, *a, *b, *d)) return bad;
  if (int bad = demand(c == d && preference->others == others && wanted == 1, "preferences")) return bad;
  results[0] = {{{0xB1, preference->workspace_bytes}}, preference->workspace_bytes, lt::kSuccess, 1, {}};
  *found = fake.fails == "nothing" ? 0 : 1;
  return end("cublasLtMatmulAlgoGetHeuristic");
}

FAKE_API int cublasLtMatmul(lt::Context* context, lt::Description* how, const void* alpha, const void* a,
                            lt::Layout* a_layout, const void* b, lt::Layout* b_layout, const void* beta, const void* c,
                            lt::Layout* c_layout, void* d, lt::Layout* d_layout, const lt::Algorithm* algorithm,
                            void* workspace, size_t workspace_bytes, cudaStream_t stream) {
  static auto& calls = *new std::deque<Call>;  // a captured one may run again at any time
  const auto aligned = [](const void* pointer, uintptr_t bytes) {
    return pointer && reinterpret_cast<uintptr_t>(pointer) % bytes == 0;
  };
  if (int bad = check_problem(*how, *a_layout, *b_layout, *d_layout)) return bad;
  if (int bad = demand(context && c == d && c_layout == d_layout, "C is to be D")) return bad;
  if (int bad = demand(aligned(a, 16) && aligned(b, 16) && aligned(d, 16), "alignment")) return bad;
  if (int bad = demand(algorithm->data[0] == 0xB1 && algorithm->data[1] <= workspace_bytes, "workspace")) return bad;
  if (int bad = demand(aligned(workspace, 256), "alignment of the workspace")) return bad;
  const auto data = [](const void* pointer) { return static_cast<char*>(const_cast<void*>(pointer)); };
  calls.push_back({{*a_layout, how->transpose_a != 0, data(a)},
                   {*b_layout, how->transpose_b != 0, data(b)},
                   {*d_layout, false, data(d)},
                   how->epilogue == lt::kEpilogueBias ? static_cast<const float*>(how->bias) : nullptr,
                   *static_cast<const float*>(alpha),
                   *static_cast<const float*>(beta),
                   data(workspace),
                   workspace_bytes});
  ++fake.products;
  if (fake.enqueue(stream, multiply, &calls.back()) != cudaSuccess) return 13;
  return end("cublasLtMatmul");
}
