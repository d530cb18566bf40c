// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/belayproject/belay/internal/releasecheck"
)

// released are the modules that users import, the library first.
var released = []string{"go.mod", "configsync/restart/systemd/go.mod", "examples/go.mod"}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: releasecheck VERSION, such as v0.1.0")
		os.Exit(2)
	}
	problems, err := check(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "releasecheck:", err)
		os.Exit(2)
	}
	for _, problem := range problems {
		fmt.Println("not ready:", problem)
	}
	if len(problems) > 0 {
		os.Exit(1)
	}
	fmt.Println("ready to tag", os.Args[1])
}

func check(text string) ([]string, error) {
	version, err := releasecheck.ParseVersion(text)
	if err != nil {
		return nil, err
	}
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
	if !strings.Contains(strings.Join(here, " ")+" ", text+" ") { // the release workflow runs on the tag itself
		problems = append(problems, releasecheck.CheckNext(version, tags)...)
	}
	changelog, err := os.ReadFile("CHANGELOG.md")
	if err != nil {
		return nil, err
	}
	problems = append(problems, releasecheck.CheckChangelog(string(changelog), version)...)
	var modules []releasecheck.Module
	for _, path := range released {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		modules = append(modules, releasecheck.ParseModule(string(data)))
	}
	return append(problems, releasecheck.CheckModules(modules)...), nil
}

func git(args ...string) ([]string, error) {
	out, err := exec.Command("git", args...).Output()
	if err != nil {
		return nil, fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
	}
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == '\n' }), nil
}
