// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/belayproject/belay/machine/provider"
	"github.com/belayproject/belay/rollout"
)

type closedGate struct{}

func (closedGate) Verdict(context.Context) rollout.Verdict {
	return rollout.Verdict{Answer: rollout.Deny}
}

// Options that can't be used are one error, and a gate is called by its name where it does not name itself.
func TestOptions(t *testing.T) {
	c := NewCommand(WithGate("", nil), WithGate("freeze", closedGate{}), WithGate("freeze", closedGate{}), WithProvider("x", provider.Provider(nil)))
	c.SetArgs([]string{"--help"})
	err := c.ExecuteContext(t.Context())
	for _, want := range []string{
		"app.NewCommand: ", `WithGate: name is required (such as "change-freeze")`, `WithGate: name "freeze" is there already`, "WithProvider: its argument is nil",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
	var p parts
	WithGate("freeze", closedGate{})(&p)
	if v := p.wire.Gates[0].Verdict(t.Context()); v.From != "freeze" || v.Answer != rollout.Deny {
		t.Errorf("the verdict is %+v, want one from freeze", v)
	}
}

// Under a root whose flag has the shorthand -v, WithLogger leaves out the flag of the log that has it as well.
func TestUnderARootWithAnotherV(t *testing.T) {
	root := &cobra.Command{Use: "fleet"}
	verbose := root.PersistentFlags().BoolP("verbose", "v", false, "say more")
	root.AddCommand(NewCommand(WithLogger(klog.Background())))
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetArgs([]string{"controller", "-v", "--help"})
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !*verbose || strings.Contains(out.String(), "--vmodule") {
		t.Errorf("verbose is %t, want true, and no flag of the log in %s", *verbose, out.String())
	}
}
