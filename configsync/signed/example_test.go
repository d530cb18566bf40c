// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package signed_test

import (
	"context"
	"crypto/ed25519"
	"fmt"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/signed"
)

func Example() {
	// In production the public keys are files on the node, read with Load, and the private key is where configs are released.
	private := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	keys, err := signed.NewKeys(map[string]ed25519.PublicKey{"release": private.Public().(ed25519.PublicKey)})
	if err != nil {
		fmt.Println(err)
		return
	}
	o := configsync.Object{Data: map[string]string{"config": "a: 1"}}
	if o.Data[signed.Entry], err = signed.Sign("release", private, o.Data); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(keys.Inspect(context.Background(), "config", o)) // as one of Options.Inspectors
	o.Data["config"] = "a: 2"
	fmt.Println(keys.Inspect(context.Background(), "config", o))
	// Output:
	// <nil>
	// signature: that by a key which this node trusts does not fit the content; it names "release"
}
