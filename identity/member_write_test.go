// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"errors"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"

	"github.com/belayproject/belay/identity"
	"github.com/belayproject/belay/identity/identitytest"
)

// TestWritesThatFail is R-ID-15: where reads work and writes do not, as with a full etcd or an admission policy that refuses, the back-off
// goes up to 7 s, and ends with the first write that works.
func TestWritesThatFail(t *testing.T) {
	for what, err := range map[string]error{
		"refused":   apierrors.NewForbidden(coordinationv1.Resource("leases"), name, errors.New("x")),
		"full":      apierrors.NewInternalError(errors.New("etcdserver: mvcc: database space exceeded")),
		"conflicts": apierrors.NewConflict(coordinationv1.Resource("leases"), name, errors.New("x")),
	} {
		t.Run(what, func(t *testing.T) {
			inBubble(t, func(b *bed) {
				b.store(func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = ptr.To("") })
				b.server.Faults(identitytest.Fault{Operation: identitytest.Update, Err: err, Times: -1})
				p := b.process("h").start()
				b.passes(5 * minute)
				p.waits(identity.Acquiring)
				if n := p.asked(); n[identitytest.Update] < 40 || n[identitytest.Update] > 100 || n[identitytest.Get] != n[identitytest.Update] {
					b.Errorf("R-ID-15: %v in 5 minutes, want a back-off up to 7 s", n)
				}
				b.server.ClearFaults()
				b.passes(7 * time.Second)
				p.holds(1)
			})
		})
	}
}
