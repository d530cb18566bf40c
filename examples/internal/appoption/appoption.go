// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package appoption

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/spf13/cobra"
)

// Problems are what is wrong with the options of one call.
type Problems []string

// Wrong notes a problem of an option, as fmt.Sprintf formats it.
func (p *Problems) Wrong(option, format string, args ...any) {
	*p = append(*p, option+": "+fmt.Sprintf(format, args...))
}

// Named notes a missing name or part of an option that adds a named part, and a name that taken has already. remedy is an example of a name.
func Named[T any](p *Problems, option, name string, part any, taken map[string]T, remedy string) {
	if name == "" {
		p.Wrong(option, "name is required (such as %q)", remedy)
	}
	if _, ok := taken[name]; ok {
		p.Wrong(option, "name %q is there already (give each a name of its own)", name)
	}
	p.Given(option, part)
}

// Given notes an option whose part is nil.
func (p *Problems) Given(option string, part any) {
	if part == nil {
		p.Wrong(option, "its argument is nil (leave the option out instead)")
		return
	}
	switch v := reflect.ValueOf(part); v.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Func, reflect.Chan, reflect.Slice:
		if v.IsNil() {
			p.Wrong(option, "its argument is a nil %T (leave the option out instead)", part)
		}
	}
}

// Err returns nil without problems, and otherwise one error with all of them.
func (p Problems) Err() error {
	if len(p) == 0 {
		return nil
	}
	return errors.New("app.NewCommand: " + strings.Join(p, "; "))
}

// Command returns c, or one that fails with the problems whatever its arguments are.
func (p Problems) Command(c *cobra.Command) *cobra.Command {
	err := p.Err()
	if err == nil {
		return c
	}
	return &cobra.Command{
		Use: c.Use, Short: c.Short, SilenceUsage: true, SilenceErrors: true, DisableFlagParsing: true, Args: cobra.ArbitraryArgs,
		RunE: func(*cobra.Command, []string) error { return err },
	}
}
