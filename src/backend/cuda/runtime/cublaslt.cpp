#include "backend/cuda/runtime/cublaslt.h"

#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>

#include "backend/cuda/cublaslt.h"
#include "backend/cuda/lower/tensor.h"
#include "backend/cuda/runtime/handles.h"
#include "brisk/error.h"

namespace brisk::backend::cuda {

CublasLt::CublasLt(const char* name) : library(name) {
  library.find("cublasLtGetVersion", version);
  library.find("cublasLtGetStatusString", status_text);
  library.find("cublasLtCreate", create);
  library.find("cublasLtMatmulDescCreate", make_description);
  library.find("cublasLtMatmulDescDestroy", destroy_description);
  library.find("cublasLtMatmulDescSetAttribute", set_description);
  library.find("cublasLtMatrixLayoutCreate", make_layout);
  library.find("cublasLtMatrixLayoutDestroy", destroy_layout);
  library.find("cublasLtMatmulPreferenceCreate", make_preference);
  library.find("cublasLtMatmulPreferenceDestroy", destroy_preference);
  library.find("cublasLtMatmulPreferenceSetAttribute", set_preference);
  library.find("cublasLtMatmulAlgoGetHeuristic", heuristic);
  library.find("cublasLtMatmul", multiply);
  missing = library.missing();
  if (!missing.empty()) return;
  const size_t found = version();
  if (found < 120000)
    missing =
        cat(name, " is version ", found / 10000, ".", found / 100 % 100, ".", found % 100, "; 12 or newer is needed");
}

namespace {

constexpr int64_t kWorkspaceBytes = int64_t{4} << 20;
constexpr uint32_t kAlignment = 16;  // of operands in bytes, as Brisk's own kernels take them

/// Never closed: the driver may be gone by the end of the process.
const CublasLt& opened() {
  static const CublasLt& found = []() -> const CublasLt& {
    const char* given = std::getenv("BRISK_CUBLASLT_LIBRARY");
    if (given && *given) return *new CublasLt(given);
    auto newest = std::make_unique<CublasLt>("libcublasLt.so.13");
    if (newest->missing.empty()) return *newest.release();
    auto older = std::make_unique<CublasLt>("libcublasLt.so.12");
    return *(older->missing.empty() ? older : newest).release();
  }();
  return found;
}

int current_device() {
  int index = 0;
  check(cudaGetDevice(&index), "asking for the current device");
  return index;
}

/// One product of the plan. Matrices of cuBLASLt lie column by column: to it Brisk's are their own transposes, so that
/// it computes D^T = B^T A^T.
class Product {
 public:
  Product(const kernels::GemmOptions& sizes, bool bias, std::string label)
      : sizes_(sizes), bias_(bias), label_(std::move(label)) {}

  /// Asks for the fastest algorithm. With the device current, away from any capture.
  void prepare(const void* bias) {
    check_status(lt_.make_description(make(description_), cublaslt::kComputeF32, CUDA_R_32F), "describing it");
    describe(cublaslt::kTransposeA, int32_t{sizes_.b_transposed});
    describe(cublaslt::kTransposeB, int32_t{sizes_.a_transposed});
    describe(cublaslt::kEpilogue, bias_ ? cublaslt::kEpilogueBias : cublaslt::kEpilogueNone);
    if (bias_) describe(cublaslt::kBiasPointer, bias);  // no algorithm is found without one
    lay_out(a_, sizes_.dtype, sizes_.a_transposed ? sizes_.k : sizes_.m, sizes_.a_transposed ? sizes_.m : sizes_.k);
    lay_out(b_, sizes_.dtype, sizes_.b_transposed ? sizes_.n : sizes_.k, sizes_.b_transposed ? sizes_.k : sizes_.n);
    lay_out(d_, sizes_.d_dtype, sizes_.m, sizes_.n);
    choose();
  }

  void run(const void* a, const void* b, const void* bias, bool accumulate, void* d, void* workspace,
           cudaStream_t stream) {
    if (bias_) describe(cublaslt::kBiasPointer, bias);
    const float alpha = 1, beta = accumulate ? 1 : 0;
    check_status(lt_.multiply(context_, description_.get(), &alpha, b, b_.get(), a, a_.get(), &beta, d, d_.get(), d,
                              d_.get(), &algorithm_, workspace, kWorkspaceBytes, stream),
                 "starting it");
  }

 private:
  template <class T>
  class Owned {
   public:
    explicit Owned(int (*destroy)(T*)) : destroy_(destroy) {}
    ~Owned() { reset(); }
    Owned(const Owned&) = delete;
    Owned& operator=(const Owned&) = delete;
    T* get() const { return value_; }
    T** reset() {
      if (value_) destroy_(value_);
      value_ = nullptr;
      return &value_;
    }

   private:
    T* value_ = nullptr;
    int (*destroy_)(T*);
  };

  template <class T>
  static T** make(Owned<T>& owned) {
    return owned.reset();
  }

  void check_status(int status, const char* doing) const {
    if (status == cublaslt::kSuccess) return;
    throw Error(ErrorCode::backend, gpu(current_device()).text(),
                cat("cuBLASLt's product for ", label_, " (", sizes_.m, " x ", sizes_.k, " times ", sizes_.k, " x ",
                    sizes_.n, "): ", doing, " failed: ", lt_.status_text(status), " (status ", status,
                    "); set BRISK_CUDA_ENGINE=native to do without"));
  }

  template <class T>
  void describe(int attribute, T value) {
    check_status(lt_.set_description(description_.get(), attribute, &value, sizeof(value)), "describing it");
  }

  void lay_out(Owned<cublaslt::Layout>& layout, DType dtype, int64_t rows, int64_t columns) {
    const cudaDataType type = dtype == DType::f16 ? CUDA_R_16F : dtype == DType::bf16 ? CUDA_R_16BF : CUDA_R_32F;
    check_status(
        lt_.make_layout(make(layout), type, static_cast<uint64_t>(columns), static_cast<uint64_t>(rows), columns),
        "describing its matrices");
  }

  void choose() {
    Owned<cublaslt::Preference> preference(lt_.destroy_preference);
    check_status(lt_.make_preference(make(preference)), "choosing an algorithm");
    const auto prefer = [&](int attribute, auto value) {
      check_status(lt_.set_preference(preference.get(), attribute, &value, sizeof(value)), "choosing an algorithm");
    };
    prefer(cublaslt::kMaxWorkspaceBytes, static_cast<uint64_t>(kWorkspaceBytes));
    prefer(cublaslt::kReductionSchemes, cublaslt::kReductionInComputeType);  // the same bits in each run
    for (int matrix = cublaslt::kMinAlignmentA; matrix <= cublaslt::kMinAlignmentD; ++matrix)
      prefer(matrix, kAlignment);
    context_ = context();
    cublaslt::Heuristic best = {};
    int found = 0;
    check_status(lt_.heuristic(context_, description_.get(), b_.get(), a_.get(), d_.get(), d_.get(), preference.get(),
                               1, &best, &found),
                 "choosing an algorithm");
    check_status(found > 0 ? best.status : cublaslt::kNotSupported, "choosing an algorithm");
    algorithm_ = best.algorithm;
  }

  /// The current device's; it lives as long as the library.
  cublaslt::Context* context() const {
    static std::mutex& mutex = *new std::mutex;
    static auto& contexts = *new std::map<int, cublaslt::Context*>;
    const int index = current_device();
    const std::lock_guard lock(mutex);
    const auto known = contexts.find(index);
    if (known != contexts.end()) return known->second;
    cublaslt::Context* made = nullptr;
    check_status(lt_.create(&made), "opening the library");
    return contexts[index] = made;
  }

  const kernels::GemmOptions sizes_;
  const bool bias_;
  const std::string label_;
  const CublasLt& lt_ = opened();
  Owned<cublaslt::Description> description_{lt_.destroy_description};
  Owned<cublaslt::Layout> a_{lt_.destroy_layout}, b_{lt_.destroy_layout}, d_{lt_.destroy_layout};
  cublaslt::Context* context_ = nullptr;
  cublaslt::Algorithm algorithm_ = {};
};

}  // namespace

std::string cublaslt_missing() { return opened().missing; }

void lower_cublaslt(const Call& call, const kernels::GemmOptions& sizes, int a, int b, Lowering& lowering) {
  const Location workspace = in_workspace(lowering, kWorkspaceBytes), bias = input_if(call, 2);
  const auto product = std::make_shared<Product>(sizes, call.inputs() > 2, graph::label(call.node));
  const bool adds = is_gradient(call, 0);
  lowering.prepare = [=](const Operands& o) { product->prepare(bias.at(o)); };
  launch(call, lowering, "cublaslt", [=](const Operands& o, CudaStream stream) {
    product->run(o.in[a], o.in[b], bias.at(o), adds && o.accumulate, o.out[0], workspace.at(o), stream);
  });
}

}  // namespace brisk::backend::cuda
