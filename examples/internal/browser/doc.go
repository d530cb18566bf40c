// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package browser tests the fleet page in headless Chromium. It is a module of its own, so that nobody else has the driver's modules.
//
// The browser is chromium on the PATH, or what BELAY_CHROMIUM names; without one the tests are skipped, unless BELAY_REQUIRE_BROWSER is set.
// BELAY_SHOTS names a directory for pictures of the page: make page-shots writes those of the docs.
package browser
