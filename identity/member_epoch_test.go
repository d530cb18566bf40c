// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/identity"
)

// TestLeaseThatKeepsChangingHands is I2 with deletions: each hold has a greater number, whoever deletes what in between.
func TestLeaseThatKeepsChangingHands(t *testing.T) {
	inBubble(t, func(b *bed) {
		last := uint64(0)
		p := b.process("h")
		for i := range 50 {
			p.start()
			b.passes(time.Minute)
			e, held := p.member.Epoch()
			if !held || e.Number <= last {
				b.Fatalf("I2: held=%v, epoch %d after %d", held, e.Number, last)
			}
			last = e.Number
			switch i % 4 {
			case 0:
				_ = p.stop()
				p = b.process("h")
			case 1:
				p.kill()
				p = b.process("h")
			case 2:
				if version, _ := strconv.ParseUint(b.lease().ResourceVersion, 10, 64); version >= e.Number {
					_ = b.admin().Delete(b.Context(), name, metav1.DeleteOptions{})
				}
				_ = p.stop()
				p = b.process("h")
			case 3: // a restore into a cluster whose versions begin anew
				b.server.Restore(b.server.Leases())
				p.kill()
				p = b.process("h")
			}
		}
	})
}

// TestForgedEpochs is I2 where somebody writes a number into the Lease that no member has given out: what cannot be followed by greater ones for
// long is not believed, and the last that is believed is followed by none.
func TestForgedEpochs(t *testing.T) {
	for forged, c := range map[string]struct{ believed, refused bool }{
		"4611686018427387000": {true, false}, "4611686018427387903": {true, true}, "4611686018427387904": {}, "9223372036854775807": {},
		"18446744073709551615": {}, "99999999999999999999": {},
	} {
		t.Run(forged, func(t *testing.T) {
			inBubble(t, func(b *bed) {
				b.store(func(l *coordinationv1.Lease) { l.Annotations[identity.EpochAnnotation] = forged })
				last := uint64(0)
				for range 3 {
					p := b.process("h").start()
					b.passes(41 * time.Second)
					if c.refused {
						if err := p.returns(); err == nil || !strings.Contains(err.Error(), forged) {
							b.Errorf("Run returned %v, want an error with the number", err)
						}
						return
					}
					e := p.holds(1)
					if e.Number <= last || e.Number > 1<<61 != c.believed {
						b.Fatalf("I2: epoch %d after %d, of a Lease with the forged %s", e.Number, last, forged)
					}
					last = e.Number
					p.kill()
				}
			})
		})
	}
}
