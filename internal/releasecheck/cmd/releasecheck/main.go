// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/belayproject/belay/internal/releasecheck"
)

func main() {
	flags := flag.NewFlagSet("releasecheck", flag.ExitOnError)
	write := flags.Bool("write", false, "write the version into each go.mod and the CHANGELOG, and check nothing")
	flags.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: releasecheck [-write] VERSION, such as v0.1.0")
	}
	_ = flags.Parse(os.Args[1:])
	if flags.NArg() != 1 {
		flags.Usage()
		os.Exit(2)
	}
	run := report
	if *write {
		run = prepare
	}
	ready, err := run(flags.Arg(0))
	if err != nil {
		fmt.Fprintln(os.Stderr, "releasecheck:", err)
		os.Exit(2)
	}
	if !ready {
		os.Exit(1)
	}
}

// report prints what stands between the work tree and the release, or the tags to make.
func report(text string) (bool, error) {
	version, err := releasecheck.ParseVersion(text)
	if err != nil {
		return false, err
	}
	problems, err := check(version)
	if err != nil {
		return false, err
	}
	for _, problem := range problems {
		fmt.Println("not ready:", problem)
	}
	owners, err := os.ReadFile("OWNERS_ALIASES")
	if err != nil {
		return false, err
	}
	empty, err := releasecheck.EmptyAliases(string(owners))
	if err != nil {
		return false, err
	}
	for _, alias := range empty {
		fmt.Printf("by hand: OWNERS_ALIASES names no member of %s\n", alias)
	}
	if len(problems) > 0 {
		return false, nil
	}
	fmt.Println("ready to tag:")
	for _, dir := range releasecheck.ReleasedModules() {
		fmt.Println(" ", releasecheck.TagOf(dir, version))
	}
	return true, nil
}

// prepare writes the version into each go.mod that requires a module of this repository, and into the CHANGELOG.
func prepare(text string) (bool, error) {
	version, err := releasecheck.ParseVersion(text)
	if err != nil {
		return false, err
	}
	library, err := readModule(".")
	if err != nil {
		return false, err
	}
	files, err := git("ls-files", "go.mod", "*/go.mod")
	if err != nil {
		return false, err
	}
	for _, file := range files {
		m, err := readModule(filepath.Dir(file))
		if err != nil {
			return false, err
		}
		for _, sibling := range m.RequiredSiblings(library.Path) {
			edit := exec.Command("go", "mod", "edit", "-require="+sibling+"@"+version.String(), file)
			if out, err := edit.CombinedOutput(); err != nil {
				return false, fmt.Errorf("editing %q: %w\n%s", file, err, out)
			}
		}
	}
	changelog, err := os.ReadFile("CHANGELOG.md")
	if err != nil {
		return false, err
	}
	written, err := releasecheck.PrepareChangelog(string(changelog), version, time.Now().UTC().Format(time.DateOnly))
	if err != nil {
		return false, err
	}
	return true, os.WriteFile("CHANGELOG.md", []byte(written), 0o644)
}

func readModule(dir string) (releasecheck.Module, error) {
	data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return releasecheck.Module{}, err
	}
	return releasecheck.ParseModule(string(data)), nil
}

func check(version releasecheck.Version) ([]string, error) {
	var problems []string
	changes, err := git("status", "--porcelain")
	if err != nil {
		return nil, err
	}
	if len(changes) > 0 {
		problems = append(problems, fmt.Sprintf("%d files of the work tree are not committed", len(changes)))
	}
	tags, err := git("tag")
	if err != nil {
		return nil, err
	}
	here, err := git("tag", "--points-at", "HEAD")
	if err != nil {
		return nil, err
	}
	if !slices.Contains(here, version.String()) { // the release workflow runs on the tag itself
		problems = append(problems, releasecheck.CheckNext(version, tags)...)
	}
	changelog, err := os.ReadFile("CHANGELOG.md")
	if err != nil {
		return nil, err
	}
	problems = append(problems, releasecheck.CheckChangelog(string(changelog), version)...)
	var modules []releasecheck.Module
	for _, dir := range releasecheck.ReleasedModules() {
		m, err := readModule(dir)
		if err != nil {
			return nil, err
		}
		modules = append(modules, m)
	}
	return append(problems, releasecheck.CheckModules(modules, version)...), nil
}

func git(args ...string) ([]string, error) {
	out, err := exec.Command("git", args...).Output()
	if err != nil {
		return nil, fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
	}
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == '\n' }), nil
}
