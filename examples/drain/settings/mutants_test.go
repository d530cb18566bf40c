// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// The tests catch settings that are broken in any of these ways.
func TestMutants(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "a grace period of 0 is taken", File: "pods.go", Run: "TestDangerous", Old: "s.GracePeriod != 0", New: "true"},
		{Name: "the selected pods are skipped", File: "pods.go", Run: "TestPodSelector", Old: "selection.Exists: metav1.LabelSelectorOpDoesNotExist", New: "selection.Exists: metav1.LabelSelectorOpExists"},
		{Name: "a number is taken for a time", File: "policy.go", Run: "TestABadPolicy", Old: "if !ok || err != nil || d < 0 {", New: "if ok && err != nil || d < 0 {"},
		{Name: "a field that isn't known is left out", File: "policy.go", Run: "TestABadPolicy", Old: "if !ok {\n\t\t\tf.say(at", New: "if !ok {\n\t\t\tdelete(object, name)\n\t\t\tcontinue\n\t\t\tf.say(at"},
		{Name: "the file goes before the flags", File: "pods.go", Run: "TestFlagsMake", Old: `if s.flags.Changed("settle") {`, New: `if policy.Settle == nil && s.flags.Changed("settle") {`},
		{Name: "the rules of the file go first", File: "pods.go", Run: "TestFlagsMake", Old: "append(skip, policy.Rules...)", New: "append(policy.Rules, skip...)"},
		{Name: "a responder without a name is taken", File: "responders.go", Run: "TestResponders", Old: `name != "" && `, New: ""},
		{Name: "what can't be obeyed is taken", File: "pods.go", Run: "TestAWrongLine", Old: `return fmt.Errorf("not here: %s", r.want)`, New: `return nil`},
	})
}
