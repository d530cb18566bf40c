// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package local_test

import (
	"os"
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// The tests catch providers that are broken in any of these ways.
func TestMutants(t *testing.T) {
	if os.Getenv("BELAY_MUTANTS") == "" {
		t.Skip("the tests of real processes take half a minute for each mutant: make mutants, or BELAY_MUTANTS=all")
	}
	mutate.Sample(t, []mutate.Mutant{
		{Name: "what was forked is not looked for", File: "start.go", Run: "TestForkedAndNotRecorded", Old: "if !free || !fresh {", New: "if false && (!free || !fresh) {"},
		{Name: "the intent is not recorded", File: "calls.go", Run: "TestPromises",
			Old: "\t\th.Phase = starting\n\t\tif err := h.write(); err != nil {", New: "\t\th.Phase = starting\n\t\tif err := ctx.Err(); err != nil {"},
		{Name: "the lock is not given to the process", File: "start.go", Run: "TestProcessThatHides", Old: ", []*os.File{alive}", New: ", []*os.File{}"},
		{Name: "the lock proves nothing", File: "halt.go", Run: "TestProcessThatHides", Old: "\tif !free {", New: "\tif !free && h.token == \"\" {"},
		{Name: "who can't be seen is overlooked at a start", File: "start.go", Run: "TestNoStartBesideTheUnseen",
			Old: "\t\tif free {\n\t\t\treturn false, nil", New: "\t\tif free || true {\n\t\t\treturn false, nil"},
		{Name: "a refused kill is done", File: "halt.go", Run: "TestKillIsRefused", Old: "if left := await(ctx, pressed); len(left) > 0 {",
			New: "if left := await(ctx, pressed); len(left) > 0 && refused != nil {\n\t\t\treturn true, \"\", nil\n\t\t} else if len(left) > 0 {"},
		{Name: "asked at each call", File: "halt.go", Run: "TestKillIsRefused", Old: "\tcase !h.Asked:\n", New: "\tcase true:\n"},
		{Name: "never killed", File: "halt.go", Run: "TestWholeMachineEnds", Old: "case c.graceLeft(h) <= 0:", New: "case false:"},
		{Name: "no grace", File: "halt.go", Run: "TestWholeMachineEnds", Old: "case c.graceLeft(h) <= 0:", New: "case true:"},
		{Name: "the first process alone", File: "procs.go", Run: "TestWholeMachineEnds", Old: "return err == nil && marked(environ, token, c.dir(token))", New: "return err == nil && len(environ) < 0"},
		{Name: "a PID is a process", File: "procs.go", Run: "TestPIDOfAnother", Old: "err == nil && s.start == p.Start", New: "err == nil"},
		{Name: "boots are all the same", File: "procs.go", Run: "TestPIDOfAnother", Old: " || p.Boot != c.boot", New: ""},
		{Name: "half a token is a mark", File: "procs.go", Run: "FuzzMarked", Old: "e := append([]byte(entry), 0)", New: "e := []byte(entry)"},
		{Name: "a name with a parenthesis", File: "procs.go", Run: "FuzzStat", Old: "bytes.LastIndexByte(data, ')')", New: "bytes.IndexByte(data, ')')"},
		{Name: "tokens are used again", File: "destroy.go", Run: "TestPromises", Old: "return err == nil, err", New: "return false, err"},
		{Name: "a Create that is late", File: "orders.go", Run: "TestDeleteBeforeCreate", Old: "if err := c.bury(tombstone{Token: token}); err != nil {",
			New: "if err := c.bury(tombstone{Token: token + \"x\"}); err != nil {"},
		{Name: "the sum of a zero mode is Destroy", File: "orders.go", Run: "TestPromises", Old: "if r.Mode == provider.Destroy {", New: "if r.Mode != provider.Retain {"},
		{Name: "other clusters may delete", File: "orders.go", Run: "TestPromises", Old: "if h.Owner.Cluster != r.Cluster {", New: "if h.Owner.Cluster == \"\" {"},
		{Name: "mounts are emptied", File: "destroy.go", Run: "FuzzMounts", Old: `strings.HasPrefix(at, dir+"/")`, New: `strings.HasPrefix(at, dir+"//")`},
		{Name: "data is a link", File: "destroy.go", Run: "TestDestroyFollowsNoLink", Old: "err == nil && !info.IsDir() {", New: "err == nil && info.Mode() == 0 {"},
		{Name: "machines are links", File: "store.go", Run: "TestMachineIsNoLink", Old: "\tif !info.IsDir() {", New: "\tif info.Mode() == 0 {"},
		{Name: "another directory is as good", File: "store.go", Run: "TestPromises", Old: "\t\tif err != nil {\n\t\t\treturn provider.Errorf(provider.Unavailable",
			New: "\t\tif err != nil && name == \"\" {\n\t\t\treturn provider.Errorf(provider.Unavailable"},
		{Name: "an empty root is new", File: "procs.go", Run: "TestRootIsNotMounted", Old: "if pid != os.Getpid() && (bytes", New: "if pid == os.Getpid() && (bytes"},
		{Name: "secrets stay", File: "halt.go", Run: "TestWhatAMachineIsGiven", Old: "if h.Phase != starting {\n\t\tif err", New: "if h.Phase == \"\" {\n\t\tif err"},
		{Name: "the parent's environment", File: "start.go", Run: "TestWhatAMachineIsGiven", Old: "\treturn env\n", New: "\treturn append(os.Environ(), env...)\n"},
		{Name: "nobody waits", File: "reaper.go", Run: "TestProcessEnds", Old: "\t\t\tif f.Revents != 0 {", New: "\t\t\tif f.Revents > 999 {"},
		{Name: "Create revives", File: "calls.go", Run: "TestProcessEnds", Old: "\tif h.Phase == starting {\n\t\tif err := h.join", New: "\tif h.Phase == starting || !c.alive(h.Process) {\n\t\tif err := h.join"},
		{Name: "disks are given twice", File: "adopt.go", Run: "TestPromises", Old: "\tif from.Phase != retained {", New: "\tif from.Phase == retained && false {"},
		{Name: "disks stay where they are", File: "adopt.go", Run: "TestDataSurvivesEachStep", Old: "c.machines.Rename(filepath.Join(from.token, dataDir), filepath.Join(h.token, dataDir))",
			New: "c.machines.Rename(filepath.Join(from.token, dataDir+\"x\"), filepath.Join(h.token, dataDir))"},
		{Name: "adopted disks have new names", File: "adopt.go", Run: "TestDataSurvivesEachStep", Old: "from.To, h.Disks = h.token, from.Disks", New: "from.To = h.token"},
		{Name: "removed files stay", File: "update.go", Run: "TestReload", Old: "next.writeFiles(before)", New: "next.writeFiles(before[:0])"},
		{Name: "nobody is told", File: "update.go", Run: "TestReload", Old: "return c.signal(member{", New: "return send(member{pid: 1, fd: fd}, 0)\n\treturn c.signal(member{"},
		{Name: "another command in place", File: "update.go", Run: "TestPromises", Old: "slices.Equal(r.Config.Command, config.Command)", New: "len(r.Config.Command) > 0"},
		{Name: "a reboot for each call", File: "halt.go", Run: "TestPromises", Old: "h.Reboots = append(h.Reboots, h.Reboot)", New: "h.Reboots = append(h.Reboots, \"\")"},
		{Name: "a console grows", File: "calls.go", Run: "TestConsoleIsCut", Old: "\tc.tidy(token)\n", New: ""},
		{Name: "broken records are left out", File: "calls.go", Run: "TestRecordIsBroken", Old: "\t\tif errors.Is(err, fs.ErrNotExist) {\n\t\t\tcontinue // has",
			New: "\t\tif err != nil || errors.Is(err, fs.ErrNotExist) {\n\t\t\tcontinue // has"},
		{Name: "files anywhere", File: "config.go", Run: "TestConfigIsChecked", Old: "filepath.IsLocal(p) && ", New: ""},
		{Name: "what is not offered is taken", File: "calls.go", Run: "TestOffers", Old: "if lacks := config.Offers.lacks(r.Desired.Versions); lacks != \"\" {", New: "if lacks := \"\"; lacks != \"\" {"},
		{Name: "what is not offered is an update", File: "update.go", Run: "TestOffers", Old: "case config.Offers.lacks(u.Desired.Versions) != \"\":", New: "case false:"},
		{Name: "a runtime's name is not looked at", File: "offers.go", Run: "TestOffers", Old: "(v.Runtime.Name == name || v.Runtime.Name == \"\")", New: "v.Runtime.Version != \"\""},
		{Name: "variables of its own", File: "config.go", Run: "TestConfigIsChecked", Old: `strings.HasPrefix(name, "BELAY_")`, New: "false"},
	})
}
