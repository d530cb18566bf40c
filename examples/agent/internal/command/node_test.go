// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"strings"
	"testing"

	"github.com/belayproject/belay/examples/internal/agent/settings"

	"github.com/spf13/cobra"
)

// Each command on a node says what is missing before it touches anything.
func TestNodeCommandsNeedAStateDirectory(t *testing.T) {
	absent := t.TempDir() + "/absent"
	for _, c := range []struct {
		make func(settings.Parts) *cobra.Command
		args []string
		want string
	}{
		{Status, nil, `--state-dir="": must name the state directory of the agent`},
		{UseLocal, nil, `--state-dir="": must name the state directory of the agent`},
		{ForgetBad, []string{"u"}, `--state-dir="": must name the state directory of the agent`},
		{Status, []string{"--state-dir=" + absent}, "no agent has run on state directory"},
		{ForgetBad, []string{"--state-dir=" + absent}, "must be one, the UID of a rejected config"},
		{ForgetBad, []string{"u", "--state-dir=" + absent}, "no agent has run on state directory"},
		{UseLocal, []string{"--state-dir=" + absent}, "no agent has run on state directory"},
		{Status, []string{"--state-dir=" + absent, "-o=wide"}, `output format "wide" is not known: it must be table, json or yaml`},
	} {
		cmd := c.make(settings.Parts{})
		out, err := execute(t, cmd, c.args...)
		if err == nil || !strings.Contains(err.Error(), c.want) || out != "" {
			t.Errorf("%s %q prints %q and %v, want an error with %q alone", cmd.Name(), c.args, out, err, c.want)
		}
	}
}
