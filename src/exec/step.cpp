// Step: the thin public side of Step::Impl.
#include "brisk/step.h"

#include "exec/step_impl.h"

namespace brisk {

Step::Step(Model& model, LossFunction loss, Optimizer optimizer, StepOptions options)
    : impl_(std::make_unique<Impl>(model, loss, std::move(optimizer), options)) {}
Step::Step(Objective objective, Inputs inputs, Optimizer optimizer, StepOptions options)
    : impl_(std::make_unique<Impl>(objective, inputs, std::move(optimizer), options)) {}
Step::Step(Step&&) noexcept = default;
Step& Step::operator=(Step&&) noexcept = default;
Step::~Step() = default;

void Step::add_metric(std::string name, MetricFunction metric) { impl_->add_metric(name, metric); }

void Step::run(const ConstView& input, const ConstView& target) {
  impl_->feed(input, target);
  impl_->run(Impl::Close::when_full);
}
void Step::run(const Feed& feed) {
  impl_->feed(feed);
  impl_->run(Impl::Close::when_full);
}
void Step::run(int64_t rows) {
  impl_->feed(rows);
  impl_->run(Impl::Close::when_full);
}
void Step::flush() { impl_->flush(); }
void Step::expect(const std::vector<std::pair<std::string, double>>& counts) { impl_->expect(counts); }
void Step::forward_backward(const ConstView& input, const ConstView& target) {
  impl_->feed(input, target);
  impl_->run(Impl::Close::never);
}
void Step::forward_backward(const Feed& feed) {
  impl_->feed(feed);
  impl_->run(Impl::Close::never);
}
void Step::update() { impl_->close_window(); }
Tensor Step::gradient(std::string_view parameter) const { return impl_->gradient(parameter); }
void Step::set_gradient(std::string_view parameter, const ConstView& value) { impl_->set_gradient(parameter, value); }
StepTotals Step::read() { return impl_->read(); }
void Step::evaluate(const Feed& feed) {
  impl_->feed(feed);
  impl_->evaluate();
}
StepTotals Step::read_evaluation() { return impl_->read_evaluation(); }
Plan Step::plan(int64_t batch, const std::string& target) const { return impl_->plan(batch, target); }
int64_t Step::largest_batch(LargestBatchOptions options) const { return impl_->largest_batch(options); }
void Step::prepare() { impl_->prepare(); }
Clock Step::clock() const { return impl_->clock(); }
int64_t Step::batch() const { return impl_->batch; }
int64_t Step::accumulate() const { return impl_->accumulate; }
int Step::threads() const { return impl_->threads; }
Step::Counters Step::counters() const { return impl_->counters(); }

}  // namespace brisk
