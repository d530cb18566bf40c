// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"embed"
	"io/fs"
)

//go:embed policies/host-agent.yaml agent/guard.yaml agent/rbac.yaml agent/view.yaml controller/rbac.yaml kubectl-belay/rbac.yaml
var files embed.FS

// Access returns the files with namespaces, rights and admission policies, in the order in which they are to be applied: a policy comes before
// the rights that it holds back.
func Access() ([][]byte, error) {
	var all [][]byte
	for _, name := range []string{
		"policies/host-agent.yaml", "agent/guard.yaml", "controller/rbac.yaml", "agent/rbac.yaml", "agent/view.yaml", "kubectl-belay/rbac.yaml",
	} {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		all = append(all, text)
	}
	return all, nil
}
