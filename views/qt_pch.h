// Precompiled for views and window: Qt's headers cost seconds a file otherwise. Never included by hand.
#pragma once

#include <QtWidgets>
