// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// L-CS-42: the pages about harmful configs list what the tests roll out, and what they do not.
func TestHarmfulConfigsPage(t *testing.T) {
	all := harms()
	if len(all) < 60 {
		t.Errorf("%d configs, want 60 at least", len(all))
	}
	seen := map[string]bool{}
	for _, h := range append(all, uncovered()...) {
		if seen[h.config] {
			t.Errorf("%q is there twice", h.config)
		}
		seen[h.config] = true
	}
	for name, want := range map[string]string{
		"harmful-configs-tested.md": harmTable(all),
		"harmful-configs.md":        uncoveredTable(uncovered()),
	} {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", name))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), want) {
			t.Errorf("docs/%s does not have this table:\n%s", name, want)
		}
	}
}

func harmTable(all []harm) string {
	var b strings.Builder
	b.WriteString("| config | the kubelet | belay | test |\n|---|---|---|---|\n")
	for _, h := range all {
		fmt.Fprintf(&b, "| `%s` | %s | keeps the config before | `TestRealKubeletSurvivesHarmfulConfigs` |\n", h.config, h.does)
	}
	return b.String()
}

func uncoveredTable(all []harm) string {
	var b strings.Builder
	b.WriteString("| config | the kubelet |\n|---|---|\n")
	for _, h := range all {
		fmt.Fprintf(&b, "| `%s` | %s |\n", h.config, h.does)
	}
	return b.String()
}
