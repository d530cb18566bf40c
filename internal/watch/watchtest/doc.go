// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package watchtest has a way to an API server on which lists and watches end as a test says, in virtual time.
package watchtest
