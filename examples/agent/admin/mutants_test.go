// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// The suite catches a socket that is broken in any of these ways.
func TestMutants(t *testing.T) {
	mutate.Kill(t, []mutate.Mutant{
		{Name: "everybody may connect", File: "server.go", Run: "TestTheSocketIs",
			Old: "os.Chmod(temp, 0o600)", New: "os.Chmod(temp, 0o666)"},
		{Name: "the socket stays", File: "server.go", Run: "TestTheSocketIs",
			Old: "return errors.Join(err, s.remove())", New: "return err"},
		{Name: "a dead socket counts as an error", File: "client.go", Run: "TestASocketOf",
			Old: ", errors.Is(err, syscall.ECONNREFUSED):", New: ", errors.Is(err, syscall.EPERM):"},
		{Name: "long names don't fit", File: "protocol.go", Run: "TestLongDirectory",
			Old: "filepath.Join(\"/proc/self/fd\", fmt.Sprint(d.Fd()), name)", New: "filepath.Join(dir, name, fmt.Sprint())"},
		{Name: "absence is an error like others", File: "client.go", Run: "TestCalls",
			Old: "if f.Absent {", New: "if false {"},
		{Name: "unknown fields are ignored", File: "server.go", Run: "TestOtherRequests",
			Old: "d.DisallowUnknownFields()", New: ""},
	})
}
