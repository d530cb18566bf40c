// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package file_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// The suite catches each of these.
func TestMutants(t *testing.T) {
	mutate.Kill(t, []mutate.Mutant{
		{Name: "one reading is enough", File: "read.go", Run: "TestStable",
			Old: "case last != nil && maps.Equal(last, now):", New: "case last == nil || maps.Equal(last, now):"},
		{Name: "a link to nowhere is absence", File: "read.go", Run: "TestDanglingLink",
			Old: "return errChanging\n\tcase errors.As", New: "return classified(err)\n\tcase errors.As"},
		{Name: "a misnamed init file is absence", File: "init.go", Run: "TestBrokenInitConfig",
			Old: "case !ok:\n\t\treturn nil, fmt.Errorf(\"the directory has %d files, and none is named %q\", len(data), key)",
			New: "case !ok:\n\t\treturn nil, fs.ErrNotExist"},
		{Name: "what changed before the first look is missed", File: "source.go", Run: "TestWatchNoticesChanges",
			Old: "last := s.look()\n\tchanged()", New: "last := s.look()"},
		{Name: "an older version is served", File: "source.go", Run: "TestChangedDirectory",
			Old: "if spec.Digest != \"\" && spec.Digest != digest {", New: "if false {"},
	})
}
