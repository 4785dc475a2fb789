// Objects that are too dear to make for each sample, lent to one thread at a time.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace brisk::data {

template <class T>
class Lending {
 public:
  /// Gives the object back at its end.
  class Loan {
   public:
    Loan(Lending& from, std::unique_ptr<T> object) : from_(from), object_(std::move(object)) {}
    ~Loan() {
      const std::lock_guard lock(from_.mutex_);
      from_.free_.push_back(std::move(object_));
    }
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;
    T& operator*() { return *object_; }
    T* operator->() { return object_.get(); }

   private:
    Lending& from_;
    std::unique_ptr<T> object_;
  };

  /// One that is free, or what make() returns: as many come to be as threads ask at the same time.
  template <class Make>
  Loan lend(const Make& make) {
    std::unique_ptr<T> object;
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        object = std::move(free_.back());
        free_.pop_back();
      } else {
        free_.reserve(++made_);  // giving back takes no memory
      }
    }
    return Loan(*this, object ? std::move(object) : make());
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<T>> free_;
  size_t made_ = 0;
};

}  // namespace brisk::data
