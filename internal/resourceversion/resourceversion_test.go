// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package resourceversion_test

import (
	"errors"
	"testing"

	"github.com/belayproject/belay/internal/resourceversion"
)

func TestCompare(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"1", "1", 0}, {"9", "10", -1}, {"10", "9", 1}, {"18446744073709551616", "18446744073709551617", -1}, {"200", "199", 1},
	} {
		if got, err := resourceversion.Compare(c.a, c.b); err != nil || got != c.want {
			t.Errorf("Compare(%q, %q) = %d, %v, want %d", c.a, c.b, got, err, c.want)
		}
	}
	for _, invalid := range []string{"", "0", "01", "-1", "1a", "1.0", "١"} {
		for _, pair := range [][2]string{{invalid, "1"}, {"1", invalid}} {
			var want resourceversion.InvalidError
			if _, err := resourceversion.Compare(pair[0], pair[1]); !errors.As(err, &want) || want.Version != invalid {
				t.Errorf("Compare(%q, %q): %v, want an InvalidError for %q", pair[0], pair[1], err, invalid)
			}
		}
	}
}
