// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// TestBackoff is R-ID-15: from 200 ms, doubling, to 7 s, half of it by chance; and what the server asks for is granted, up to a limit.
func TestBackoff(t *testing.T) {
	var b retryDelay
	boom := errors.New("boom")
	for i, ms := range []int{200, 400, 800, 1600, 3200, 6400, 7000, 7000} {
		full := time.Duration(ms) * time.Millisecond
		if got := b.after(boom, time.Minute); got < full/2 || got >= full {
			t.Errorf("R-ID-15: wait %d is %s, want %s to %s", i, got, full/2, full)
		}
	}
	for asked, want := range map[int]time.Duration{9: 9 * time.Second, 3600: 10 * time.Second} {
		if got := b.after(apierrors.NewTooManyRequests("x", asked), 10*time.Second); got != want {
			t.Errorf("R-ID-15: with Retry-After %d the wait is %s, want %s", asked, got, want)
		}
	}
}

// TestRequestLimit: after a renewal is due, as late as it may be, two tries fit into what is left of the hold, and none takes longer than an
// interval.
func TestRequestLimit(t *testing.T) {
	for _, timing := range []Timing{
		ControlPlane(), NodeAgent(), {Renew: time.Second, Hold: 2 * time.Second}, {Renew: time.Second, Hold: time.Minute},
		{Renew: 10 * time.Second, Jitter: 0.5, Hold: 30 * time.Second}, {Renew: 10 * time.Second, Jitter: 0.5, Hold: time.Minute},
	} {
		latest := time.Duration(float64(timing.Renew) * (1 + timing.Jitter))
		if l := timing.requestLimit(); l > timing.Renew || latest+2*l > timing.Hold || l <= 0 {
			t.Errorf("with %+v a request may take %s", timing, l)
		}
	}
}
