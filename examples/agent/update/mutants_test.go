// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package update

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// The tests without a server catch a part that is broken in any of these ways; those with one are beside the agent's main.
func TestMutants(t *testing.T) {
	mutate.Kill(t, []mutate.Mutant{
		{Name: "a shut door shows the shadow", File: "door.go", Run: "TestDoor",
			Old: "if !d.open.Load() {\n\t\treturn nodeagent.Shadow{}", New: "if false {\n\t\treturn nodeagent.Shadow{}"},
		{Name: "a shut door lets writes through", File: "door.go", Run: "TestDoor",
			Old: "if !d.open.Load() {\n\t\treturn fmt.Errorf", New: "if false {\n\t\treturn fmt.Errorf"},
		{Name: "the agent is not woken by the door", File: "door.go", Run: "TestDoor",
			Old: "if d.open.Swap(open) != open {", New: "if d.open.Swap(open); false {"},
		{Name: "a misspelled hook is taken for none", File: "hooks.go", Run: "TestHooksAreFound",
			Old: "if !slices.Contains(Verbs(), name) {", New: "if !slices.Contains(Verbs(), name) && len(name) == 0 {"},
		{Name: "apply may be missing", File: "hooks.go", Run: "TestHooksAreFound",
			Old: "if i < needed && found[verb] == nil {", New: "if i < 1 && found[verb] == nil {"},
		{Name: "what can't be executed is a hook", File: "hooks.go", Run: "TestHooksAreFound",
			Old: "info.Mode()&0o111 != 0", New: "info.Mode() != 0"},
		{Name: "a Revision of another digest is taken", File: "configs.go", Run: "TestRevisionStands",
			Old: `if digest != "" && r.Spec.Digest != digest {`, New: `if digest == "" && r.Spec.Digest == digest {`},
		{Name: "a ConfigMap of another content is taken", File: "configs.go", Run: "TestRevisionStands",
			Old: "err == nil && spec.Digest != r.Spec.Digest", New: "err == nil && spec.Digest == \"\""},
		{Name: "who is told is told once", File: "part.go", Run: "TestWhoIsTold",
			Old: "r.o.Told(err)\n", New: "r.o.Told(err)\n\t\treturn err\n"},
		{Name: "a long lease makes no member", File: "agent.go", Run: "TestEveryLeaseDuration",
			Old: "max(time.Hour, 3*liveness)", New: "time.Hour"},
	})
}
