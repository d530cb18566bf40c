// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package signed_test

import (
	"crypto/ed25519"
	"errors"
	"strings"
	"testing"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/signed"
)

// Nothing but a line that was made with the key is good, and a refusal tells nothing but names of keys.
func FuzzSignatures(f *testing.F) {
	public, private := pair(7)
	k, err := signed.NewKeys(map[string]ed25519.PublicKey{"k": public})
	if err != nil {
		f.Fatal(err)
	}
	data := map[string]string{"a": "canary"}
	good, err := signed.Sign("k", private, data)
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{good, "", "k", "k =", "# c\n" + good + "\n", strings.Repeat("a ", 100), good[:40], "j" + good[1:]} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, entry string) {
		err := k.Inspect(t.Context(), "a", configsync.Object{Data: with(data, signed.Entry, entry)})
		var unsigned *signed.UnsignedError
		switch {
		case err == nil && !strings.Contains(entry, good):
			t.Fatalf("%q is good", entry)
		case err != nil && (!errors.As(err, &unsigned) || strings.Contains(err.Error(), "canary") || len(err.Error()) > 2000):
			t.Fatalf("error %v", err)
		}
	})
}
