// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package option_test

import (
	"errors"
	"io"
	"os"
	"slices"
	"testing"

	"github.com/belayproject/belay/internal/option"
)

// TestAllProblemsInOneError shows that one error names everything that is missing, with its remedy, and that a nil
// pointer in an interface counts as missing.
func TestAllProblemsInOneError(t *testing.T) {
	kind := errors.New("invalid option")
	c := option.For("drain.New", kind)
	var typedNil *os.File
	c.Require("Options.Cache", nil, "see drain/kube.NewCache")
	c.Require("Options.Out", io.Writer(typedNil), "")
	c.Require("Options.Holder", "", "the same over restarts")
	c.Require("Options.Names", map[string]string(nil), "")
	c.Require("Options.Now", (func())(nil), "")
	c.Require("Options.There", os.Stdout, "")
	c.Require("Options.Number", 0, "")
	c.Require("Options.Name", "a", "")
	c.Wrong("Options.QPS must not be negative, got %d", -1)
	err := c.Err()
	const want = "drain.New: Options.Cache is required (see drain/kube.NewCache); Options.Out is required; " +
		"Options.Holder is required (the same over restarts); Options.Names is required; Options.Now is required; " +
		"Options.QPS must not be negative, got -1"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	var typed *option.Error
	missing := []string{"Options.Cache", "Options.Out", "Options.Holder", "Options.Names", "Options.Now"}
	if !errors.As(err, &typed) || !slices.Equal(typed.Missing, missing) || !errors.Is(err, kind) {
		t.Errorf("got %#v, want an Error of the kind that misses %v", err, missing)
	}
}

// TestNothingWrong shows that a call whose options are there has no error, in an interface or not.
func TestNothingWrong(t *testing.T) {
	c := option.For("drain.New", nil)
	c.Require("Options.Cache", t, "")
	if err := c.Err(); err != nil {
		t.Errorf("got %v, want nil", err)
	}
}
