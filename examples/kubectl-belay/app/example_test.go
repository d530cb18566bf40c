// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/examples/kubectl-belay/app"
)

// where prints the address of the API server that the flags name.
func where(connect func() (*rest.Config, error)) *cobra.Command {
	return &cobra.Command{Use: "where", RunE: func(*cobra.Command, []string) error {
		config, err := connect()
		if err == nil {
			fmt.Println(config.Host)
		}
		return err
	}}
}

// A plugin with a sub-command of the fleet's own.
func ExampleNewCommand() {
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "kubeconfig")
	text := "apiVersion: v1\nkind: Config\ncurrent-context: a\n" +
		"clusters:\n- {name: a, cluster: {server: https://127.0.0.1:6443}}\n" +
		"contexts:\n- {name: a, context: {cluster: a}}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	c := app.NewCommand(app.WithCommand(where))
	c.SetArgs([]string{"where", "--kubeconfig=" + file})
	if err := c.Execute(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// https://127.0.0.1:6443
}
