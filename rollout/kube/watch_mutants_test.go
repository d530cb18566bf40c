// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// The tests catch watches that are looked after badly.
func TestWatchMutants(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "a watch that is refused is none the worse", File: "watch.go", Run: "TestRefusedWatch",
			Old: "if w.failure != nil && version", New: "if w.failure != nil && !synced && version"},
		{Name: "a watch that was refused once is so for ever", File: "watch.go", Run: "TestWatchThatComesBack",
			Old: "version == w.version && time.Since(w.at) < quiet {", New: "version != \"?\" {"},
		{Name: "a watch that hears nothing has not come back", File: "watch.go", Run: "TestWatchThatComesBack", Old: " && time.Since(w.at) < quiet {", New: " {"},
		{Name: "an API server that is away refuses", File: "watch.go", Run: "TestWatchThatWaitsForItsServer", Old: "if away(err) {", New: "if away(nil) {"},
		{Name: "who hears something has not come back", File: "watch.go", Run: "TestWatchThatComesBack", Old: "version == w.version && time", New: "version+w.version != \"?\" && time"},
		{Name: "nobody looks after the watch of a cache", File: "cache.go", Run: "TestRefusedWatch",
			Old: "errors.Join(c.watch.begin(), c.informer.SetTransform(c.read))", New: "errors.Join(c.informer.SetTransform(c.read))"},
		{Name: "a ledger without a watch is watched", File: "ledger_watch.go", Run: "TestRefusedWatch",
			Old: "\tif watch == nil {\n\t\treturn &WatchError", New: "\tif watch == nil {\n\t\treturn nil\n\t}\n\tif watch == nil {\n\t\treturn &WatchError"},
	})
}
