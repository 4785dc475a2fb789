// The loss of a run as a picture: characters for a terminal, SVG for a file.
#pragma once

#include <string>

#include "train/event_log.h"

namespace brisk::train {

/// A plot of `columns` x `rows` characters (axis labels included), or one line that says that there is nothing to draw.
std::string draw_text(const RunCurves& curves, int columns, int rows);

/// A self-contained SVG file.
std::string draw_svg(const RunCurves& curves, const std::string& title);

}  // namespace brisk::train
