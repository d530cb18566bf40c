// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package watch_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/features"
	featurestesting "k8s.io/client-go/features/testing"
	"k8s.io/client-go/tools/cache"

	"github.com/belayproject/belay/internal/testenv"
	"github.com/belayproject/belay/internal/watch"
	wire "github.com/belayproject/belay/internal/watch/watchtest"
)

func TestMain(m *testing.M) {
	// The second one pauses after an error, by a time that it keeps for the whole process: an error in a bubble, whose time is another, would hold up other tests.
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1] //nolint:reassign // it has no other switch
	testenv.LetBubblesIdle()
	os.Exit(m.Run())
}

var errLost = errors.New("http2: client connection lost")

// TestOnlyTheAPIServerHasAWatchListAgain covers R-CS-37: a fleet behind what cuts connections does not list; each watch goes on from the version that it had.
func TestOnlyTheAPIServerHasAWatchListAgain(t *testing.T) {
	const goesOn, anew = "list, watch 7, watch 7", "list, watch 7, list, watch 7"
	bookmark, added := new(wire.Thread).Bookmark(), new(wire.Thread).Added()
	for name, c := range map[string]struct {
		first wire.Answer
		want  string
	}{
		"refused":                       {wire.Fails(syscall.ECONNREFUSED), goesOn},
		"cut while it was written":      {wire.Fails(fmt.Errorf("write: %w", syscall.EPIPE)), goesOn},
		"cut before the answer":         {wire.Fails(io.EOF), goesOn},
		"reset":                         {wire.Fails(fmt.Errorf("read: %w", syscall.ECONNRESET)), goesOn},
		"lost":                          {wire.Fails(errLost), goesOn},
		"no such host":                  {wire.Fails(errors.New("dial tcp: lookup wire.test: no such host")), goesOn},
		"ended as soon as it began":     {wire.Says(http.StatusOK, ""), goesOn},
		"502 of a gateway":              {wire.Says(http.StatusBadGateway, "<html>bad gateway"), goesOn},
		"503 of a gateway":              {wire.Says(http.StatusServiceUnavailable, "<html>away"), goesOn},
		"504 of a gateway":              {wire.Says(http.StatusGatewayTimeout, "<html>late"), goesOn},
		"429":                           {wire.Says(http.StatusTooManyRequests, wire.Status(429, `,"reason":"TooManyRequests"`)), goesOn},
		"lost after an event":           {wire.Brings(bookmark, time.Minute, errLost), "list, watch 7, watch 9"},
		"lost after an object":          {wire.Brings(added, time.Minute, errLost), "list, watch 7, watch 5"},
		"lost before any":               {wire.Brings("", time.Minute, errLost), goesOn},
		"no events":                     {wire.Says(http.StatusOK, "never\n"), anew},
		"an event and its end":          {wire.Says(http.StatusOK, bookmark), "list, watch 7, watch 9"},
		"forgotten":                     {wire.Says(http.StatusOK, wire.Forgotten()), anew},
		"forgotten, said by the answer": {wire.Says(http.StatusGone, wire.Status(410, `,"reason":"Expired"`)), anew},
		"from the future":               {wire.Says(http.StatusGatewayTimeout, wire.Status(504, `,"reason":"Timeout","details":{"causes":[{"reason":"ResourceVersionTooLarge"}]}`)), anew},
		"forbidden":                     {wire.Says(http.StatusForbidden, wire.Status(403, `,"reason":"Forbidden"`)), anew},
	} {
		t.Run(name, func(t *testing.T) { asks(t, &wire.Thread{First: []wire.Answer{c.first}}, c.want) })
	}
}

// TestWordlessEndBeforeTheWord covers R-CS-37: the API server ends a watch without a word if the events from there on are forgotten in the moment in which it
// begins (processInterval of k8s.io/apiserver/pkg/storage/cacher), and says 410 to the next one. That is one list, not two.
func TestWordlessEndBeforeTheWord(t *testing.T) {
	w := &wire.Thread{First: []wire.Answer{wire.Brings("", 4*time.Millisecond, io.EOF), wire.Says(http.StatusOK, wire.Forgotten())}}
	asks(t, w, "list, watch 7, watch 7, list, watch 7")
}

// TestAListThatIsAWatchGoesOn covers R-CS-37: the watch that a list has become is not begun anew with another one; a list that was cut is.
// It turns on what client-go has off by default before 0.35.
func TestAListThatIsAWatchGoesOn(t *testing.T) {
	featurestesting.SetFeatureDuringTest(t, features.WatchListClient, true)
	of := new(wire.Thread)
	for name, c := range map[string]struct {
		first wire.Answer
		want  string
	}{
		"ended as soon as it was a watch": {wire.Brings(of.Added()+of.Listed(), time.Millisecond, io.EOF), "stream, watch 7"},
		"ended later":                     {wire.Brings(of.Added()+of.Listed(), time.Minute, io.EOF), "stream, watch 7"},
		"lost":                            {wire.Brings(of.Added()+of.Listed(), time.Minute, errLost), "stream, watch 7"},
		"lost after a bookmark":           {wire.Brings(of.Listed()+of.Bookmark(), time.Minute, errLost), "stream, watch 9"},
		"cut before it began":             {wire.Fails(io.EOF), "stream, stream"},
		"ended before it began":           {wire.Brings("", time.Millisecond, io.EOF), "stream, stream"},
		"cut in the middle":               {wire.Brings(of.Added(), time.Minute, io.EOF), "stream, stream"},
	} {
		t.Run(name, func(t *testing.T) { asks(t, &wire.Thread{Streams: true, Initial: c.first}, c.want) })
	}
}

// requestPause is the pause of client-go's REST client before it sends a request again whose connection was lost.
const requestPause = time.Second

// TestAWatchWithoutAServerEndsAtOnce: whoever stops an agent does not wait for the pause of a watch that never had an answer.
func TestAWatchWithoutAServerEndsAtOnce(t *testing.T) {
	for name, way := range map[string]wire.Answer{"refused": wire.Fails(syscall.ECONNREFUSED), "429": wire.Says(http.StatusTooManyRequests, wire.Status(429, "")), "lost": wire.Fails(errLost)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, last := 0, time.Time{}
				// A list that loses its connection is a row of requests with a second between them.
				stop := informed(t, &wire.Thread{Initial: func(req *http.Request) (*http.Response, error) {
					if time.Since(last) > requestPause {
						n++
					}
					last = time.Now()
					return way(req)
				}})
				<-time.After(10*time.Minute + 500*time.Millisecond)
				stop()
				if n < 5 || n > 30 {
					t.Errorf("%d attempts in ten minutes, want pauses that grow to half a minute or one", n)
				}
			})
		})
	}
}

// asks runs an informer over the thread for five minutes, and compares what it has asked.
func asks(t *testing.T, w *wire.Thread, want string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		stop := informed(t, w)
		<-time.After(5 * time.Minute)
		if got := w.Asked(); got != want {
			t.Errorf("asked %s, want %s", got, want)
		}
		stop()
	})
}

// informed runs an informer over the thread. What it returns stops that, and wants it to end at once.
func informed(t *testing.T, w *wire.Thread) (stop func()) {
	t.Helper()
	client, err := dynamic.NewForConfig(w.Config())
	if err != nil {
		t.Fatal(err)
	}
	resource := schema.GroupVersionResource{Group: "belay.dev", Version: "v1alpha1", Resource: "nodeconfigs"}
	informer := watch.NewInformer(client, resource, metav1.NamespaceAll, cache.Indexers{}, nil)
	err = informer.SetTransform(func(obj any) (any, error) { // an object belongs to who has taken it: without that, the race detector says so
		obj.(*unstructured.Unstructured).SetResourceVersion("1")
		return obj, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return wire.Runs(t, informer.RunWithContext)
}
