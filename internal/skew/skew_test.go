// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package skew

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func moduleRoot(t *testing.T) string {
	t.Helper()
	root, err := Root()
	must(t, err)
	return root
}

func readPage(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{moduleRoot(t)}, path...)...))
	must(t, err)
	return string(text)
}

// TestFloorIsThatOfGoMod: a program that imports a package of belay never has to upgrade Kubernetes, or Go.
func TestFloorIsThatOfGoMod(t *testing.T) {
	root := moduleRoot(t)
	for _, module := range kubernetesModules() {
		version, err := Required(filepath.Join(root, "go.mod"), module)
		must(t, err)
		if version != Libraries()[0].Version {
			t.Errorf("go.mod requires %s %s, want %s, the oldest supported release: go work sync raises it",
				module, version, Libraries()[0].Version)
		}
	}
	for _, dir := range []string{".", "configsync/restart/systemd", "examples/metrics"} {
		version, err := GoLine(filepath.Join(root, dir, "go.mod"))
		must(t, err)
		if version != EmbedderGo {
			t.Errorf("%s/go.mod says go %s, want %s, which goes with the oldest supported releases", dir, version, EmbedderGo)
		}
	}
}

// TestFloorsOfThePromise holds VERSIONING.md against the oldest releases that are tested.
func TestFloorsOfThePromise(t *testing.T) {
	promise := readPage(t, "VERSIONING.md")
	servers, err := Servers(moduleRoot(t))
	must(t, err)
	for floor, oldest := range map[string]string{
		"k8s.io/*": Libraries()[0].Version, "Go": Minor(EmbedderGo), "Kubernetes API server": Minor(servers[0]),
	} {
		if row := fmt.Sprintf("\n| %s | %s | ", floor, oldest); !strings.Contains(promise, row) {
			t.Errorf("VERSIONING.md lacks a row that begins with %q", strings.TrimSpace(row))
		}
	}
}

// TestLibrariesAreThoseOfTheServers: each supported minor is in both tables, client libraries and servers.
func TestLibrariesAreThoseOfTheServers(t *testing.T) {
	servers, err := Servers(moduleRoot(t))
	must(t, err)
	var have, want []string
	for _, l := range Libraries() {
		if !l.MayFail {
			have = append(have, Minor(l.Version))
		}
	}
	for _, s := range servers {
		want = append(want, strings.Replace(Minor(s), "1.", "0.", 1))
	}
	if !slices.Equal(have, want) {
		t.Errorf("the client libraries are %q, those of the pinned servers %q", have, want)
	}
	if !slices.IsSorted(want) || len(slices.Compact(slices.Clone(want))) != len(want) {
		t.Errorf("the servers are %q, want one of each minor, the oldest first", servers)
	}
}

// TestCompatibilityPageIsTrue holds docs/compatibility.md against the pins and the tables of this package.
func TestCompatibilityPageIsTrue(t *testing.T) {
	root := moduleRoot(t)
	page := readPage(t, "docs", "compatibility.md")
	servers, err := Servers(root)
	must(t, err)
	var libraries, runtimes, managers, alphas []string
	for _, l := range Libraries() {
		if l.MayFail {
			alphas = append(alphas, l.Version)
			continue
		}
		libraries = append(libraries, l.Version)
	}
	for _, e := range Embedders() {
		runtimes = append(runtimes, e.Runtime)
	}
	for _, e := range ManagerRuntimes() {
		managers = append(managers, e.Runtime)
	}
	goVersion, err := GoLine(filepath.Join(root, "go.mod"))
	must(t, err)
	for _, row := range []string{
		fmt.Sprintf("| Kubernetes API server | %s | `make skew` |", strings.Join(servers, ", ")),
		fmt.Sprintf("| k8s.io client libraries | %s | `make matrix` |", strings.Join(libraries, ", ")),
		fmt.Sprintf("| the next k8s.io release, may fail | %s | `make matrix` |", strings.Join(alphas, ", ")),
		fmt.Sprintf("| controller-runtime beside it | %s | `make matrix` |", strings.Join(runtimes, ", ")),
		fmt.Sprintf("| controller-runtime of %s | %s | `make matrix` |",
			"[examples/manager](embedding/controller-runtime.md)", strings.Join(managers, ", ")),
		fmt.Sprintf("| Go | %s or newer | `make matrix` |", goVersion),
	} {
		if !strings.Contains(page, "\n"+row+"\n") {
			t.Errorf("docs/compatibility.md lacks the row\n%s", row)
		}
	}
	old, err := Required(filepath.Join(root, "internal", "controlplane", "v1.36", "go.mod"), "k8s.io/kubernetes")
	must(t, err)
	row := fmt.Sprintf("| kubelet | %s, %s | `make test-system` |", strings.TrimPrefix(old, "v"), servers[len(servers)-1])
	if !strings.Contains(page, "\n"+row+"\n") {
		t.Errorf("docs/compatibility.md lacks the row\n%s", row)
	}
}

// TestManagerHasTheNewest: the go.mod of examples/manager requires the newest controller-runtime of the table, and a
// line of the matrix requires no more than its own.
func TestManagerHasTheNewest(t *testing.T) {
	modfile := filepath.Join(moduleRoot(t), managerDir, "go.mod")
	have, err := Required(modfile, runtimeModule)
	must(t, err)
	all := ManagerRuntimes()
	if newest := all[len(all)-1].Runtime; have != newest || len(all) != 3 {
		t.Errorf("examples/manager requires controller-runtime %s, want %s, the newest of %d, and 3 of them",
			have, newest, len(all))
	}
	text := "module m\n\ngo 1.26.0\n\nrequire (\n\t" + Module + " v0.0.0\n\tk8s.io/api v0.37.2\n\t" +
		runtimeModule + " v0.25.2\n)\n\nrequire k8s.io/utils v0.1.0 // indirect\n\nreplace " + Module + " => ../..\n"
	want := "module m\n\ngo " + EmbedderGo + "\n\nrequire " + runtimeModule + " v0.23.3\nrequire " + Module +
		" v0.0.0\n\nreplace " + Module + " => ../..\n"
	if got := lowestModule(text, Embedder{Runtime: "v0.23.3"}); got != want {
		t.Errorf("the module is\n%swant\n%s", got, want)
	}
}

// TestGainsAreTrue holds the page for embedders against the imports as they are: each public package has a line, and
// links no more packages than that says. make matrix compares all columns, to the last digit.
func TestGainsAreTrue(t *testing.T) {
	listed, err := ParseGains(readPage(t, "docs", "embedding", "dependencies.md"))
	must(t, err)
	want, err := Linked(t.Context(), moduleRoot(t))
	must(t, err)
	if len(want) < 40 {
		t.Fatalf("there are %d public packages: go list was misread", len(want))
	}
	rows := func(gains []Gain) map[string]int {
		linked := map[string]int{}
		for _, g := range gains {
			linked[g.Package] = g.Linked
		}
		return linked
	}
	have, linked := rows(listed), rows(want)
	if len(have) != len(listed) || len(linked) != len(want) {
		t.Errorf("a package has two lines: %d lines for %d packages", len(listed), len(have))
	}
	for name, n := range linked {
		if got, ok := have[name]; !ok || got < n {
			t.Errorf("dependencies.md says that %s links %d packages (in the table: %t), and it links %d; to write it: "+
				"make matrix MATRIXARGS='-only gains -write'", name, got, ok, n)
		}
	}
	for name := range have {
		if _, ok := linked[name]; !ok {
			t.Errorf("docs/embedding/dependencies.md has a line for %s, which is no public package", name)
		}
	}
}

// TestToolchainIsTheOldest: a module is built by the release of Go that it names; the installed one stands for its own
// minor.
func TestToolchainIsTheOldest(t *testing.T) {
	installed := strings.TrimPrefix(runtime.Version(), "go")
	for line, want := range map[string]string{"1.21.0": "go1.21.0", Minor(installed) + ".0": "go" + installed} {
		modfile := filepath.Join(t.TempDir(), "go.mod")
		must(t, os.WriteFile(modfile, []byte("module example.test/m\n\ngo "+line+"\n"), 0o600))
		got, err := toolchainFor(t.Context(), modfile)
		must(t, err)
		if got != want {
			t.Errorf("go %s: the toolchain is %q, want %q", line, got, want)
		}
	}
}

// TestSuitesAreThoseThatLinkServers also shows which of them start kubelets.
func TestSuitesAreThoseThatLinkServers(t *testing.T) {
	const list = Module + "/drain.test /src/drain k8s.io/api/core/v1 " + Module + "/internal/testenv/binaries\n" +
		Module + "/internal/machinenode.test /src/internal/machinenode " + Module + "/internal/testenv " +
		Module + "/internal/testenv/nodetier\n" +
		Module + "/drain/kube.test /src/drain/kube " + Module + "/internal/testenv\n" +
		Module + "/examples/agent /src/agent " + Module + "/internal/testenv\n" +
		Module + "/internal/testenv/cmd/controlplane.test /src/internal/testenv/cmd/controlplane " + Module +
		"/internal/testenv\n\n"
	want := []Suite{
		{Module + "/drain/kube", "/src/drain/kube", false},
		{Module + "/internal/machinenode", "/src/internal/machinenode", true},
	}
	if got := parseSuites(list); !slices.Equal(got, want) {
		t.Errorf("the suites are %+v, want %+v", got, want)
	}
	if r := RunSuite(t.Context(), want[1], "", "1.34.4", false); r.Failed() || r.Cell() != "-" {
		t.Errorf("a suite with kubelets on an older release: %q, want that it is left out", r.Cell())
	}
}

// TestTables shows what is printed and what is read back.
func TestTables(t *testing.T) {
	gains := []Gain{{"checkpoint", 1, 2, 3, 0, 0}, {"drain/kube", 480, 42, 158, 2, 2}}
	page, err := ReplaceTable("# Page\n\n"+tableBegin+"old\n"+tableEnd+"\nend\n", GainTable(gains))
	must(t, err)
	got, err := ParseGains(page)
	must(t, err)
	framed := strings.HasPrefix(page, "# Page\n") && strings.HasSuffix(page, "\nend\n")
	if !slices.Equal(got, gains) || !framed || strings.Contains(page, "old") {
		t.Errorf("the page is\n%s\nwith the gains %+v, want %+v between its first and last lines", page, got, gains)
	}
	if _, err := ReplaceTable("# Page\n", "table"); err == nil {
		t.Error("a page without a place for the table: no error")
	}
	const want = "| a   | bcde |\n|-----|------|\n| f   | g    |\n"
	if got := Table([][]string{{"a", "bcde"}, {"f", "g"}}); got != want {
		t.Errorf("the table is\n%swant\n%s", got, want)
	}
}

// TestVerdicts: a release that is not out may fail; what was not run is no failure, and no success.
func TestVerdicts(t *testing.T) {
	bad, skipped := errors.New("broken"), Result{Err: errSkipped}
	for _, c := range []struct {
		build  Build
		failed bool
		row    string
	}{
		{Build{Library: Library{Version: "v1"}, Go: "1.25.0"}, false, "k8s.io v1 1.25.0 ok ok ok 0 ok"},
		{Build{Vet: Result{Err: bad}}, true, "k8s.io   ok FAIL ok 0 FAIL"},
		{Build{Build: Result{Err: bad}, Vet: skipped, Test: skipped}, true, "k8s.io   FAIL - - 0 FAIL"},
		{Build{Library: Library{MayFail: true}, Test: Result{Err: bad}}, false, "k8s.io   ok ok FAIL 0 fails, as it may"},
	} {
		if got := strings.Join(c.build.Row(), " "); c.build.Failed() != c.failed || got != c.row {
			t.Errorf("failed %t, row %q; want %t, %q", c.build.Failed(), got, c.failed, c.row)
		}
	}
}
