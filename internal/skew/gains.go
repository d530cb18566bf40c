// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package skew

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// The other modules that embedders import.
const (
	systemdModule = Module + "/configsync/restart/systemd"
	metricsModule = Module + "/examples/metrics"
)

// ownModules are the modules that embedders import.
func ownModules() []string { return []string{Module, systemdModule, metricsModule} }

// What the embedder of the table has before it imports a package of belay.
const (
	EmbedderGo         = "1.25.0"
	EmbedderKubernetes = "v0.35.0"
)

// A Gain is what one public package brings into the build of a program that imports it.
type Gain struct {
	Package string // inside the module
	// Linked counts the packages of other modules that the package reaches, at the releases of its own go.mod.
	Linked int
	// Modules and Sums count the requirements and the lines of go.sum of a program that imports nothing else.
	Modules, Sums int
	// ModulesBeside and SumsBeside count what a program gains that imports k8s.io/client-go/kubernetes already.
	ModulesBeside, SumsBeside int
}

// listed is what go list says of one package.
type listed struct {
	ImportPath, Name string
	Standard         bool
	Deps             []string
}

// Linked returns the public packages of the library, sorted, with what each links and nothing else. It needs no
// network.
func Linked(ctx context.Context, root string) ([]Gain, error) {
	var gains []Gain
	for _, module := range ownModules() {
		packages, err := listPackages(ctx, filepath.Join(root, strings.TrimPrefix(module, Module)))
		if err != nil {
			return nil, err
		}
		for _, p := range packages {
			if !isPublic(p) || !strings.HasPrefix(p.ImportPath, module) {
				continue
			}
			gain := Gain{Package: strings.TrimPrefix(p.ImportPath, Module+"/")}
			for _, dep := range p.Deps {
				if d, ok := packages[dep]; ok && !d.Standard && !strings.HasPrefix(dep+"/", Module+"/") {
					gain.Linked++
				}
			}
			gains = append(gains, gain)
		}
	}
	slices.SortFunc(gains, func(a, b Gain) int { return strings.Compare(a.Package, b.Package) })
	return gains, nil
}

func listPackages(ctx context.Context, dir string) (map[string]listed, error) {
	out, err := goCommand(ctx, dir, nil, "list", "-deps", "-json=ImportPath,Name,Standard,Deps", "./...")
	if err != nil {
		return nil, err
	}
	packages := map[string]listed{}
	decoder := json.NewDecoder(strings.NewReader(out))
	for {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, fmt.Errorf("reading go list: %w", err)
		}
		packages[p.ImportPath] = p
	}
}

// isPublic reports whether users import p. The root package is documentation.
func isPublic(p listed) bool {
	rel, own := strings.CutPrefix(p.ImportPath, Module+"/")
	return own && p.Name != "main" && !slices.Contains(strings.Split(rel, "/"), "internal")
}

// Measure completes a gain by scratch modules. It fails where the import raises the Go release or a k8s.io module of
// the embedder.
func Measure(ctx context.Context, root string, g Gain) (Gain, error) {
	belay := map[string]string{Module: "v0.0.0", systemdModule: "v0.0.0"}
	if Module+"/"+g.Package == metricsModule {
		belay[metricsModule] = "v0.0.0"
	}
	var err error
	if g.Modules, g.Sums, err = measure(ctx, root, belay, "", Module+"/"+g.Package); err != nil {
		return g, fmt.Errorf("importing %s alone: %w", g.Package, err)
	}
	const client = "k8s.io/client-go/kubernetes"
	kubernetes := map[string]string{}
	for _, m := range kubernetesModules() {
		kubernetes[m], belay[m] = EmbedderKubernetes, EmbedderKubernetes
	}
	modules, sums, err := measure(ctx, root, kubernetes, EmbedderKubernetes, client)
	if err != nil {
		return g, fmt.Errorf("importing client-go: %w", err)
	}
	withModules, withSums, err := measure(ctx, root, belay, EmbedderKubernetes, client, Module+"/"+g.Package)
	if err != nil {
		return g, fmt.Errorf("importing %s beside client-go: %w", g.Package, err)
	}
	g.ModulesBeside, g.SumsBeside = withModules-modules, withSums-sums
	return g, nil
}

// measure counts what a program requires that imports the packages.
func measure(
	ctx context.Context, root string, requires map[string]string, kubernetes string, packages ...string,
) (modules, sums int, err error) {
	s, err := newScratch(root, EmbedderGo, requires, packages...)
	if err != nil {
		return 0, 0, err
	}
	defer s.remove()
	if err := s.tidy(ctx, EmbedderGo, kubernetes); err != nil {
		return 0, 0, err
	}
	return s.counts()
}

// gainColumns are the heads of the table of gains.
var gainColumns = []string{
	"package", "packages linked", "alone: modules", "alone: go.sum", "beside: modules", "beside: go.sum",
}

// GainTable is the table of gains in Markdown.
func GainTable(gains []Gain) string {
	rows := [][]string{gainColumns}
	for _, g := range gains {
		row := []string{"`" + g.Package + "`"}
		for _, n := range []int{g.Linked, g.Modules, g.Sums, g.ModulesBeside, g.SumsBeside} {
			row = append(row, strconv.Itoa(n))
		}
		rows = append(rows, row)
	}
	return Table(rows)
}

// ParseGains reads the table of gains in a page.
func ParseGains(page string) ([]Gain, error) {
	var gains []Gain
	for line := range strings.Lines(page) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		name, isGain := strings.CutPrefix(strings.TrimSpace(cells[0]), "`")
		if !isGain || len(cells) != len(gainColumns) {
			continue
		}
		g := Gain{Package: strings.TrimSuffix(name, "`")}
		for i, to := range []*int{&g.Linked, &g.Modules, &g.Sums, &g.ModulesBeside, &g.SumsBeside} {
			n, err := strconv.Atoi(strings.TrimSpace(cells[i+1]))
			if err != nil {
				return nil, fmt.Errorf("reading the gains of %s: %w", g.Package, err)
			}
			*to = n
		}
		gains = append(gains, g)
	}
	return gains, nil
}

// What stands around a generated table in a page.
const (
	tableBegin = "<!-- generated by make matrix: begin -->\n"
	tableEnd   = "<!-- generated by make matrix: end -->\n"
)

// ReplaceTable returns the page with another generated table.
func ReplaceTable(page, table string) (string, error) {
	before, rest, begins := strings.Cut(page, tableBegin)
	_, after, ends := strings.Cut(rest, tableEnd)
	if !begins || !ends {
		return "", fmt.Errorf("the page lacks %q or %q", tableBegin, tableEnd)
	}
	return before + tableBegin + "\n" + table + "\n" + tableEnd + after, nil
}
