// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest_test

// Where two packages meet, the consumer declares a small interface and the other has a method that satisfies it as it is.
// The compiler checks each such pair here, in one place, so that neither package has to import the other:
//
//	var _ lkg.Store = (*checkpoint.Store)(nil)
//
// A pair is added with the second of its packages. Without the line an interface and its implementation can drift apart
// unseen, and every embedder has to write the adapter that the design promises away.
