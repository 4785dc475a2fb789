// Signals that ask a run to end.
#pragma once

namespace brisk::train {

/// While one lives, SIGTERM, SIGINT and SIGUSR1 are noted instead of doing what the program had them do; the last one
/// to go puts the program's handlers back.
class StopSignals {
 public:
  explicit StopSignals(bool enabled);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  /// The last signal noted since the first of those alive was made; 0: none, or not enabled.
  int received() const;

 private:
  const bool enabled_;
};

/// "SIGTERM"
const char* signal_name(int signal);

}  // namespace brisk::train
