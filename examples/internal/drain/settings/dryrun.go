// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"fmt"
	"strconv"

	"github.com/spf13/pflag"
)

// A DryRun says whether anything is written. It is a flag with the values of kubectl.
type DryRun string

// The values of --dry-run.
const (
	DryRunNone   DryRun = "none"   // it is no dry run
	DryRunClient DryRun = "client" // no request is sent that writes
	DryRunServer DryRun = "server" // each write is sent to the API server, which judges it and stores nothing
)

// AddFlag adds --dry-run. Without a value it is client.
func (d *DryRun) AddFlag(f *pflag.FlagSet) {
	*d = DryRunNone
	f.Var(d, "dry-run", "none, client or server: client prints what would be done; server has the API server judge "+
		"each write too")
	f.Lookup("dry-run").NoOptDefVal = string(DryRunClient)
}

// String is the value.
func (d *DryRun) String() string { return string(*d) }

// Type is the name of the kind of value in the help.
func (d *DryRun) Type() string { return "string" }

// Set takes a value. As in kubectl, true is client and false is none.
func (d *DryRun) Set(text string) error {
	if b, err := strconv.ParseBool(text); err == nil {
		text = string(DryRunNone)
		if b {
			text = string(DryRunClient)
		}
	}
	switch v := DryRun(text); v {
	case DryRunNone, DryRunClient, DryRunServer:
		*d = v
		return nil
	}
	return fmt.Errorf("must be %s, %s or %s", DryRunNone, DryRunClient, DryRunServer)
}
