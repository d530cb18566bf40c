// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/identity"
	"github.com/belayproject/belay/identity/identitytest"
)

// recorder is the client that writes records of the work.
const recorder = "recorder"

// TestDependentRecordsComeSecond is R-ID-19: work writes a record with its holder as soon as it begins. Whatever becomes of the requests of the
// member, in the order of the server each record stands behind a Lease with that holder.
func TestDependentRecordsComeSecond(t *testing.T) {
	inBubble(t, func(b *bed) {
		records := 0
		record := func(e identity.Epoch) {
			records++
			l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("record-", records)}}
			l.Spec.HolderIdentity = &e.Holder
			if _, err := b.server.Client(namespace, recorder, nil).Create(b.Context(), l, metav1.CreateOptions{}); err != nil {
				b.Error(err)
			}
		}
		faults := []identitytest.Fault{
			{}, {Hang: true}, {Hang: true, Committed: true}, {Delay: 5 * time.Second}, {Err: errors.New("reset")},
			{Err: errors.New("reset"), Committed: true}, {Err: errors.New("reset"), Times: 5},
		}
		for i := range 6 * len(faults) {
			p := b.process("h")
			p.begun = record
			for _, fault := range []identitytest.Fault{faults[i%len(faults)], faults[i/len(faults)]} {
				fault.Client, fault.Operation = p.client, identitytest.Create
				b.server.Faults(fault)
				fault.Operation = identitytest.Update
				b.server.Faults(fault)
			}
			p.start()
			b.passes(2 * minute)
			if i%2 == 0 {
				p.kill()
			} else {
				_ = p.stop()
			}
		}
		if checked := b.checkRecords(); checked != records || records < 6*len(faults) {
			b.Errorf("R-ID-19: %d records of %d were checked, want one at least for each process", checked, records)
		}
	})
}

// checkRecords demands of each record that its holder was stored before, and counts them.
func (b *bed) checkRecords() int {
	b.Helper()
	stored, records := map[string]bool{}, 0
	for _, q := range inOrder(b.server.Requests()) {
		switch {
		case q.Version == "" || q.Operation == identitytest.Delete:
		case q.Client != recorder:
			stored[*q.Lease.Spec.HolderIdentity] = true
		default:
			records++
			if !stored[*q.Lease.Spec.HolderIdentity] {
				b.Errorf("R-ID-19: %s was written with the holder %q, which no Lease has had by then", q.Name, *q.Lease.Spec.HolderIdentity)
			}
		}
	}
	return records
}
