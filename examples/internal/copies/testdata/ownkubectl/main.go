// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// kubectl belay with a command of its own: kubectl belay where.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/examples/kubectl-belay/app"
)

func where(connect func() (*rest.Config, error)) *cobra.Command {
	return &cobra.Command{Use: "where", Short: "Print the address of the API server", RunE: func(c *cobra.Command, _ []string) error {
		config, err := connect()
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(c.OutOrStdout(), config.Host)
		return err
	}}
}

func main() { os.Exit(app.Run(app.NewCommand(app.WithCommand(where)))) }
