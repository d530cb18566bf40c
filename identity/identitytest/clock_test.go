// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identitytest_test

import (
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/identity/identitytest"
)

// after lets time go by in a bubble.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// TestClockHasAnOffsetAndARate: it is off by any time, and slow or fast.
func TestClockHasAnOffsetAndARate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		for _, c := range []struct {
			offset time.Duration
			rate   float64
			want   time.Duration // of an hour
		}{{0, 0, time.Hour}, {24 * time.Hour, 1, time.Hour}, {-87600 * time.Hour, 0.95, 57 * time.Minute}, {time.Minute, 1.05, 63 * time.Minute}} {
			clock := identitytest.NewClock(c.offset, c.rate)
			before := time.Since(began)
			after(time.Hour)
			if got := clock.Elapsed(); got != c.want {
				t.Errorf("offset %v, rate %v: %v have elapsed, want %v", c.offset, c.rate, got, c.want)
			}
			if got := clock.Now().Sub(began.Add(before)); got != c.offset+c.want {
				t.Errorf("offset %v, rate %v: the wall clock is at +%v, want +%v", c.offset, c.rate, got, c.offset+c.want)
			}
		}
	})
}

// TestTimerFiresInItsTime: never before Elapsed has gone on by its time, also where that is a nanosecond; and not long after.
func TestTimerFiresInItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, rate := range []float64{0.95, 1, 1.0499, 1.05} {
			clock := identitytest.NewClock(0, rate)
			for _, d := range []time.Duration{1, 2, 3, time.Millisecond, time.Second + 1, time.Hour} {
				start := clock.Elapsed()
				c, stop := clock.Timer(d)
				<-c
				stop()
				if took := clock.Elapsed() - start; took < d || took > d+5 {
					t.Errorf("rate %v: a timer of %v fired after %v of its clock", rate, d, took)
				}
			}
			c, stop := clock.Timer(-time.Second)
			<-c
			stop()
		}
	})
}

// TestTimersStandStillWhileTheMachineSleeps, and Elapsed goes on.
func TestTimersStandStillWhileTheMachineSleeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := identitytest.NewClock(0, 1)
		before, stopBefore := clock.Timer(10 * time.Second)
		defer stopBefore()
		after(4 * time.Second)
		clock.Suspend()
		clock.Suspend() // twice is once
		within, stopWithin := clock.Timer(time.Second)
		defer stopWithin()
		stopped, stop := clock.Timer(time.Second)
		stop()
		after(time.Hour)
		wantFired(t, "during the sleep", before, false)
		wantFired(t, "during the sleep", within, false)
		if got := clock.Elapsed(); got != time.Hour+4*time.Second {
			t.Errorf("%v have elapsed, want the sleep among them", got)
		}
		clock.Resume()
		clock.Resume()
		after(5 * time.Second)
		wantFired(t, "after 9 s awake of 10", before, false)
		wantFired(t, "after the sleep", within, true)
		clock.Suspend()
		after(500 * time.Millisecond)
		clock.Resume()
		after(700 * time.Millisecond)
		wantFired(t, "after 9.7 s awake of 10", before, false)
		after(time.Second)
		wantFired(t, "after 10.7 s awake of 10", before, true)
		wantFired(t, "after it was stopped", stopped, false)
	})
}

func wantFired(t *testing.T, when string, c <-chan time.Time, want bool) {
	t.Helper()
	select {
	case <-c:
		if !want {
			t.Errorf("%s a timer has fired", when)
		}
	default:
		if want {
			t.Errorf("%s a timer has not fired", when)
		}
	}
}

// TestRequestsOfASleepingMachineAreCarriedOut, and their answers and events wait for it.
func TestRequestsOfASleepingMachineAreCarriedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, clock := identitytest.NewServer(), identitytest.NewClock(0, 1)
		client := server.Client("default", "sleeper", clock)
		w, err := client.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "1"})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		clock.Suspend()
		answered := make(chan error, 1)
		go func() {
			_, err := client.Create(t.Context(), newLease("a"), metav1.CreateOptions{})
			answered <- err
		}()
		after(time.Minute)
		if n := len(server.Leases()); n != 1 || len(answered) != 0 {
			t.Errorf("there are %d Leases and %d answers, want one and none", n, len(answered))
		}
		select {
		case e := <-w.ResultChan():
			t.Errorf("a machine that sleeps got the event %v", e.Type)
		default:
		}
		clock.Resume()
		if err := <-answered; err != nil {
			t.Error(err)
		}
		wantEvents(t, w, "ADDED a")
	})
}
