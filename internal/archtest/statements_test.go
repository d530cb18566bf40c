// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestStatements keeps the comparison with the Kubernetes proposal true.
func TestStatements(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(moduleRoot(t), RequirementsFile))
	if err != nil {
		t.Fatal(err)
	}
	all, err := ParseStatements(text)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 100 {
		t.Errorf("%d statements, want every one of the proposal", len(all))
	}
	report(t, StatementsTrue(all, Tests(moduleTree(t))))
}

// TestStatementsCatch shows lines that cannot be read, and lines that promise what no test keeps.
func TestStatementsCatch(t *testing.T) {
	tests := Tests(tree(t, "lkg/a_test.go", "package lkg\n\n// TestDoc shows R-CS-13.\nfunc TestDoc(t *testing.T) {}\n"))
	const good = "| KP-001 | says | met | R-CS-13 | `lkg.TestDoc` |"
	for _, c := range []struct{ name, text, want string }{
		{"good", good, ""},
		{"differs", strings.Replace(good, "met", "differs: better", 1), ""},
		{"not yet", "| KP-001 | says | not yet: why | R-CS-13 | not yet |", ""},
		{"two rows", strings.Replace(good, "R-CS-13", "R-CS-12, R-CS-13", 1), ""},
		{"a gap", good + "\n" + strings.Replace(good, "001", "003", 1), "KP-003 stands where KP-002 belongs"},
		{"no such row", strings.Replace(good, "R-CS-13", "R-CS-13, R-CS-99", 1), `belongs to "R-CS-99"`},
		{"no such test", strings.Replace(good, "TestDoc", "TestGone", 1), `"lkg.TestGone", which does not exist`},
		{"another row's test", strings.Replace(good, "R-CS-13", "R-CS-12", 1), "mentions none of its rows"},
		{"no reason", strings.Replace(good, "met", "differs", 1), `"differs" is neither`},
		{"met without a test", "| KP-001 | says | met | R-CS-13 | not yet |", `"not yet" is no test`},
		{"a column too few", "| KP-001 | says | met | `lkg.TestDoc` |", "is not of the form"},
	} {
		t.Run(c.name, func(t *testing.T) {
			all, err := ParseStatements([]byte("\n" + c.text + "\n"))
			if err != nil {
				if text := err.Error(); c.want == "" || !strings.Contains(text, c.want) ||
					!strings.Contains(text, RequirementsFile+":2: ") {
					t.Errorf("got %q, want %q with its line", text, c.want)
				}
				return
			}
			wantOnly(t, StatementsTrue(all, tests), c.want)
		})
	}
}
