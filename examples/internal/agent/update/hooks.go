// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package update

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/belayproject/belay/rollout/nodeagent"
)

// needed are how many of the verbs must have a hook.
const needed = 3

// Verbs are the names of hooks. The first three are needed.
func Verbs() []string {
	return []string{"observe", "apply", "verify", "prepare", "preflight", "disruption", "revert"}
}

// Hooks is the updater of a directory: the program there that is named like a verb is the hook of that verb, as nodeagent.Exec says.
// Files that can't be executed, and those whose name begins with a dot, are nobody's. Any other program is an error: a hook whose name is
// misspelled would be missed only when the node needs it. What hooks write to their standard error goes to stderr; nil drops it.
func Hooks(dir string, stderr io.Writer) (nodeagent.Updater, error) {
	found, err := programs(dir)
	if err != nil {
		return nil, err
	}
	var errs []error
	for i, verb := range Verbs() {
		if i < needed && found[verb] == nil {
			errs = append(errs, fmt.Errorf("it has no program named %s", verb))
		}
	}
	for name := range found {
		if !slices.Contains(Verbs(), name) {
			errs = append(errs, fmt.Errorf("program %q is no hook: must be named %s", name, strings.Join(Verbs(), ", ")))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return nodeagent.Exec{
		Observe: found["observe"], Apply: found["apply"], Verify: found["verify"], Prepare: found["prepare"],
		Preflight: found["preflight"], Disruption: found["disruption"], Revert: found["revert"], Stderr: stderr,
	}.NewUpdater()
}

// programs are the commands of a directory by name.
func programs(dir string) (map[string][]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	found := map[string][]string{}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		info, err := os.Stat(path) // a link stands for what it leads to
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			found[e.Name()] = []string{path}
		}
	}
	return found, nil
}
