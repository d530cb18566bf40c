// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/kube"
)

// impostor answers every request as a broken or hostile API server might.
func impostor(t *testing.T, answer http.HandlerFunc) *rest.Config {
	t.Helper()
	s := httptest.NewServer(answer)
	t.Cleanup(s.Close)
	return &rest.Config{Host: s.URL, QPS: -1}
}

func says(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		fmt.Fprint(w, body)
	}
}

const configMapBody = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"ns","name":"%s","uid":"u","resourceVersion":"1"},
"immutable":true,"data":{"kubelet":"hush"}}`

// TestAnswersAreClassified shows which answer means what. Nothing but an answer about the object says anything about the object, and
// no error shows what an object holds.
func TestAnswersAreClassified(t *testing.T) {
	status := func(reason string, code int) string {
		return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d,"message":"said so"}`, reason, code)
	}
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		want   error
		cause  string
	}{
		{"good", says(200, fmt.Sprintf(configMapBody, "cm")), nil, ""},
		{"not found", says(404, status("NotFound", 404)), configsync.ErrMissing, "said so"},
		{"no such path", says(404, "404 page not found"), configsync.ErrUnreachable, "doesn't serve this kind"},
		{"forbidden", says(403, status("Forbidden", 403)), configsync.ErrForbidden, "said so"},
		{"unauthorized", says(401, status("Unauthorized", 401)), configsync.ErrUnreachable, "said so"},
		{"broken", says(500, status("InternalError", 500)), configsync.ErrUnreachable, "said so"},
		{"overloaded", says(503, ""), configsync.ErrUnreachable, ""},
		{"half an object", says(200, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"na`), configsync.ErrUnreachable, ""},
		{"not JSON", says(200, "<html>hush</html>"), configsync.ErrUnreachable, ""},
		{"without a kind", says(200, "{}"), configsync.ErrUnreachable, ""},
		{"another object", says(200, fmt.Sprintf(configMapBody, "other")), configsync.ErrMismatch, `"ns/other"`},
		{"too large", says(200, fmt.Sprintf(configMapBody, "cm")+strings.Repeat(" ", kube.MaxResponse)), configsync.ErrUnreachable, "too large"},
		{"too large an error", says(500, strings.Repeat("x", kube.MaxResponse+1)), configsync.ErrUnreachable, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := kube.NewConfigMapFetcher(clientFor(t, impostor(t, c.answer)), kube.Options{Timeout: 5 * time.Second})
			must(t, err)
			_, err = f.Fetch(t.Context(), configsync.Spec{Namespace: "ns", Name: "cm", UID: "u"})
			if !errors.Is(err, c.want) {
				t.Fatalf("got %v, want it to wrap %v", err, c.want)
			}
			if err == nil {
				return
			}
			if classes(err) != 1 || !strings.Contains(err.Error(), c.cause) || !strings.Contains(err.Error(), `ConfigMap "ns/cm"`) {
				t.Errorf("got %v, want one class, the cause %q, and the object's name", err, c.cause)
			}
			if strings.Contains(err.Error(), "hush") || len(err.Error()) > 2000 {
				t.Errorf("the error shows what was sent: %.2000q", err)
			}
		})
	}
}

// TestHugeAnswerIsNotRead shows that an answer without an end costs no more than the bound.
func TestHugeAnswerIsNotRead(t *testing.T) {
	sent := make(chan int, 1)
	client := clientFor(t, impostor(t, func(w http.ResponseWriter, r *http.Request) {
		n, chunk := 0, []byte(strings.Repeat(" ", 64<<10))
		for r.Context().Err() == nil {
			m, err := w.Write(chunk)
			n += m
			if err != nil {
				break
			}
		}
		sent <- n
	}))
	f, err := kube.NewConfigMapFetcher(client, kube.Options{})
	must(t, err)
	_, err = f.Fetch(deadline(t), configsync.Spec{Namespace: "ns", Name: "cm", UID: "u"})
	if !errors.Is(err, configsync.ErrUnreachable) {
		t.Errorf("got %v, want it to wrap %v", err, configsync.ErrUnreachable)
	}
	if n := <-sent; n > 4*kube.MaxResponse {
		t.Errorf("the server could send %d bytes, want little more than %d", n, kube.MaxResponse)
	}
}

// TestPackedAnswerIsNotUnpackedBeyondTheBound shows that the bound is on what an answer is unpacked to: a quarter of a gigabyte of blanks, which is small
// on the way. S-CS-04.
func TestPackedAnswerIsNotUnpackedBeyondTheBound(t *testing.T) {
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	must(t, err)
	_, err = z.Write(bytes.Repeat([]byte(" "), 1<<20))
	must(t, err)
	must(t, z.Close())
	answer := bytes.Repeat(packed.Bytes(), 256) // the members of a gzip file are read one after the other
	client := clientFor(t, impostor(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Type", "application/json")
		if _, err := w.Write(answer); err != nil {
			return // the client has seen enough
		}
	}))
	f, err := kube.NewConfigMapFetcher(client, kube.Options{})
	must(t, err)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = f.Fetch(deadline(t), configsync.Spec{Namespace: "ns", Name: "cm", UID: "u"})
	runtime.ReadMemStats(&after)
	if !errors.Is(err, configsync.ErrUnreachable) {
		t.Errorf("got %v, want it to wrap %v", err, configsync.ErrUnreachable)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 64<<20 {
		t.Errorf("S-CS-04: %d bytes on the way took %d bytes of memory, want little more than a multiple of %d",
			len(answer), took, kube.MaxResponse)
	}
}

// TestSilenceEndsByTheDeadline shows that a server that never answers holds up no call for longer than its timeout, and that the
// caller's own deadline counts too.
func TestSilenceEndsByTheDeadline(t *testing.T) {
	client := clientFor(t, impostor(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	source, err := kube.NewNodeConfigSource(client, "n", kube.Options{Timeout: 300 * time.Millisecond})
	must(t, err)
	patient, err := kube.NewNodeConfigSource(client, "n", kube.Options{Timeout: time.Hour})
	must(t, err)
	for name, desired := range map[string]func() error{
		"own": func() error { _, err := source.Desired(t.Context()); return err },
		"the caller": func() error {
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			_, err := patient.Desired(ctx)
			return err
		},
	} {
		began := time.Now()
		err := desired()
		if !errors.Is(err, configsync.ErrUnreachable) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: got %v, want it unreachable by the deadline", name, err)
		}
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("%s: the call took %s, want about 300 ms", name, took)
		}
	}
}

// TestNobodyListens shows that a refused connection is unreachable, not missing.
func TestNobodyListens(t *testing.T) {
	config := impostor(t, says(200, ""))
	gone := httptest.NewServer(nil)
	config.Host = gone.URL
	gone.Close()
	source, err := kube.NewAnnotationSource(clientFor(t, config), "n", kube.Options{})
	must(t, err)
	if spec, err := source.Desired(deadline(t)); spec != nil || !errors.Is(err, configsync.ErrUnreachable) {
		t.Errorf("got %v, %v, want it unreachable", spec, err)
	}
}

// TestLegacyFieldIsRead shows what NewLegacySource makes of the field, on a server that keeps it.
func TestLegacyFieldIsRead(t *testing.T) {
	for _, c := range []struct {
		name, field string
		want        *configsync.Spec
		cause       string
	}{
		{"absent", `{}`, nil, ""},
		{"null", `{"configSource":null}`, nil, ""},
		{"all-nil", `{"configSource":{}}`, nil, "invalid NodeConfigSource, exactly one subfield must be non-nil, but all were nil"},
		{"no name", `{"configSource":{"configMap":{"namespace":"a","kubeletConfigKey":"k"}}}`, nil, "spec.configSource.configMap.name: must not be empty"},
		{"text", `{"configSource":"x"}`, nil, "spec.configSource: it must be an object"},
		{"numbers", `{"configSource":{"configMap":{"namespace":1}}}`, nil, "spec.configSource: it is malformed"},
		{"good", `{"configSource":{"configMap":{"namespace":"a","name":"b","kubeletConfigKey":"k"}}}`,
			&configsync.Spec{Namespace: "a", Name: "b", Key: "k", Policy: configsync.Follow}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			body := `{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"},"spec":` + c.field + `}`
			source, err := kube.NewLegacySource(clientFor(t, impostor(t, says(200, body))), "n", kube.Options{})
			must(t, err)
			got, err := source.Desired(deadline(t))
			var invalid *configsync.InvalidError
			switch {
			case c.cause != "" && (!errors.As(err, &invalid) || !strings.Contains(err.Error(), c.cause)):
				t.Errorf("got %v, want it invalid with %q", err, c.cause)
			case c.cause == "" && err != nil:
				t.Error(err)
			case (got == nil) != (c.want == nil) || got != nil && *got != *c.want:
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

// TestMistakesOfTheCaller shows that constructors say what they miss.
func TestMistakesOfTheCaller(t *testing.T) {
	client := clientFor(t, impostor(t, says(200, "")))
	for _, c := range []struct {
		name string
		err  func() error
		want string
	}{
		{"no client", func() error { _, err := kube.NewConfigMapFetcher(nil, kube.Options{}); return err }, "client is required"},
		{"no node", func() error { _, err := kube.NewNodeConfigSource(client, "", kube.Options{}); return err }, "node is required"},
		{"no name of a node", func() error { _, err := kube.NewAnnotationSource(client, "../x", kube.Options{}); return err }, `node name "../x"`},
		{"time that runs backwards", func() error {
			_, err := kube.NewStatusReporter(client, "n", kube.Options{Timeout: -1})
			return err
		}, "timeout must be positive"},
	} {
		if err := c.err(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}
