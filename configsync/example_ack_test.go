// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync_test

import (
	"context"
	"fmt"
	"time"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/lkg"
)

// A trial that begins when an operator has said that the node can still be reached, and a probe that is shown and
// decides nothing.
func ExampleAck() {
	acknowledged := map[string]bool{"uid-2": true} // an annotation, a file, a ticket
	o := configsync.Options[string]{
		Ack: &configsync.Ack{
			Given:    func(_ context.Context, r lkg.Ref) (bool, error) { return acknowledged[r.UID], nil },
			Deadline: 10 * time.Minute,
		},
		Probes: []configsync.Probe{configsync.Wanted(&gauge{})},
	}
	for _, uid := range []string{"uid-1", "uid-2"} {
		given, err := o.Ack.Given(context.Background(), lkg.Ref{UID: uid})
		fmt.Println(uid, given, err)
	}
	fmt.Println(o.Probes[0].Name())
	// Output:
	// uid-1 false <nil>
	// uid-2 true <nil>
	// gauge
}
