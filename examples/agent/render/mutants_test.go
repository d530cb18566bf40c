// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// The suite catches a renderer that is broken in any of these ways.
func TestMutants(t *testing.T) {
	mutate.Kill(t, []mutate.Mutant{
		{Name: "the file is written in place", File: "file.go", Run: "TestTheSameContent|TestAKilledWriter",
			Old: "if err := f.replace(payload); err != nil {", New: "if err := os.WriteFile(f.path, payload, mode); err != nil {"},
		{Name: "the same content is written again", File: "file.go", Run: "TestTheSameContent",
			Old: "if f.holds(payload) {", New: "if false {"},
		{Name: "drift of the mode is not seen", File: "file.go", Run: "TestDrift",
			Old: "info.Mode() != mode || ", New: ""},
		{Name: "leftovers stay", File: "file.go", Run: "TestOpenRemoves",
			Old: "if err := f.removeTemp(); err != nil {\n\t\treturn nil, ", New: "if err := error(nil); err != nil {\n\t\treturn nil, "},
		{Name: "a failed write leaves its temporary file", File: "file.go", Run: "TestAFullDisk",
			Old: "errors.Join(fmt.Errorf(\"rendering to %q: %w\", f.path, err), f.removeTemp())", New: "err"},
		{Name: "what is there is believed without a sync", File: "file.go", Run: "TestWhatWasThere",
			Old: "f.settled() || !f.doubtful && f.settle()", New: "true"},
		{Name: "a failed sync is forgotten", File: "file.go", Run: "TestAFailedSync",
			Old: "f.doubtful = true\n", New: "f.doubtful = false\n"},
		{Name: "files of others are taken", File: "own.go", Run: "TestFilesOfOthers", Old: `other != "" && same(path, other)`, New: "false"},
		{Name: "links on the way are not followed", File: "own.go", Run: "TestFilesOfOthers",
			Old: "return filepath.Join(resolved(dir), filepath.Base(path))", New: "return path"},
		{Name: "a removal is not synced", File: "own.go", Run: "TestRemove",
			Old: "if err := f.syncPath(filepath.Dir(f.path)); err != nil && ", New: "if err := error(nil); err != nil && "},
	})
}
