// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
