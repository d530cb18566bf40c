// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package providertest_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/machine/provider"
	"github.com/belayproject/belay/machine/provider/providertest"
)

// A request that is not understood is InvalidConfig with what is wrong, and has no effect.
func TestBadRequests(t *testing.T) {
	c := newCloud(t)
	good := `{"request": {"token": "t-1", "owner": {"cluster": "c1", "name": "m", "uid": "u", "incarnation": 1}, "digest": "d", ` +
		`"desired": {"versions": {}, "node": {}}, "join": {}}, "config": {"apiVersion": "", "kind": ""}}`
	for _, row := range []struct{ method, path, body, want string }{
		{"POST", "/v1/Create", "", "is not valid JSON"},
		{"POST", "/v1/Create", "{", "is not valid JSON"},
		{"POST", "/v1/Create", `{"colour": 1}`, `colour" is not known: want`},
		{"POST", "/v1/Create", `{"config": {"colour": 1}}`, `colour" is not known: want`},
		{"POST", "/v1/Create", `{"config": {"size": 1}}`, "number"},
		{"POST", "/v1/Create", good + good, "there is more than one value"},
		{"POST", "/v1/Create", good + "}", "there is more than one value"},
		{"POST", "/v1/Create", strings.Repeat(" ", 1<<20) + good, "more than 1048576 bytes"},
		{"POST", "/v1/Create", strings.Replace(good, "t-1", "T-1", 1), `token "T-1"`},
		{"POST", "/v1/Create", strings.Replace(good, `"kind": ""`, `"kind": "", "size": "huge"`, 1), `size "huge"`},
		{"POST", "/v1/Fly", "{}", `POST "/v1/Fly" is no call`},
		{"GET", "/v1/Create", "", `GET "/v1/Create" is no call`},
		{"POST", "/faults", `{"kind": "Latency", "delay": "1s"}`, "string"},
		{"POST", "/faults", `{}`, `kind ""`},
		{"DELETE", "/instances/T%2F1", "", `token "T/1"`},
		{"GET", "/", "", "is no call"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), row.method, c.at.URL+row.path, strings.NewReader(row.body))
		if err != nil {
			t.Fatal(err)
		}
		reply, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(reply.Body)
		_ = reply.Body.Close()
		var e struct{ Class, Message string }
		if err != nil || reply.StatusCode != http.StatusBadRequest || json.Unmarshal(body, &e) != nil || e.Class != "InvalidConfig" || !strings.Contains(e.Message, row.want) {
			t.Errorf("%s %s %.80s: got %d %s, %v, want 400 InvalidConfig with %q", row.method, row.path, row.body, reply.StatusCode, body, err, row.want)
		}
	}
	if i := c.inventory(); i.Instances+i.Disks+i.UsedTokens != 0 {
		t.Errorf("got %+v, want nothing", i)
	}
}

// What answers and is no fake cloud is never believed to say that an instance is not there; its status gives the class.
func TestOtherServers(t *testing.T) {
	for _, row := range []struct {
		status int
		body   string
		want   provider.Class
	}{
		{404, "404 page not found", provider.Internal},
		{404, `{"class": "Conflict", "message": "x"}`, provider.Internal},
		{404, `{"class": "NotFound", "message": "x"}`, provider.NotFound},
		{401, "", provider.Unauthorized},
		{403, "", provider.Unauthorized},
		{429, "", provider.RateLimited},
		{502, "", provider.Unavailable},
		{503, "<html>", provider.Unavailable},
		{504, "", provider.Unavailable},
		{500, "", provider.Internal},
		{200, "<html>", provider.Unavailable},
		{200, "", provider.Unavailable},
	} {
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "3")
			w.WriteHeader(row.status)
			_, _ = io.WriteString(w, row.body)
		}))
		p, err := providertest.New(providertest.Options{URL: web.URL + "/"})
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.Get(t.Context(), provider.Ref{Token: "t-1"})
		if got := provider.ClassOf(err); got != row.want || !strings.Contains(err.Error(), `fake cloud: get "t-1"`) {
			t.Errorf("%d %q: got %v, want %s that names the call", row.status, row.body, err, row.want)
		}
		if after := provider.AfterOf(err); row.status != 200 && after != 3*time.Second {
			t.Errorf("%d with Retry-After 3: got After %s", row.status, after)
		}
		web.Close()
		_, err = p.Get(t.Context(), provider.Ref{Token: "t-1"})
		wantClass(t, "nobody answers", err, provider.Unavailable)
	}
}

// What is secret is not sent: a digest of it is.
func TestSecretsAreNotSent(t *testing.T) {
	var sent bytes.Buffer
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(&sent, r.Body)
		_, _ = io.WriteString(w, "{}")
	}))
	defer web.Close()
	p, err := providertest.New(providertest.Options{URL: web.URL})
	if err != nil {
		t.Fatal(err)
	}
	can := provider.AbilitiesOf(p)
	secret := map[string][]byte{"key": []byte("the canary sings")}
	r := want(1, config)
	r.Join = provider.Join{Endpoint: "https://api", Bootstrap: secret, Credentials: secret}
	u := ask(r.Token, config, nil)
	u.Join = r.Join
	_, err = p.Create(t.Context(), r)
	_, adopt := can.Adopter.Adopt(t.Context(), provider.AdoptRequest{As: r})
	_, plan := can.Planner.Plan(t.Context(), u)
	_, update := can.Updater.Update(t.Context(), u)
	_, del := p.Delete(t.Context(), provider.DeleteRequest{Ref: u.Ref, Credentials: secret})
	if err := errors.Join(err, adopt, plan, update, del); err != nil {
		t.Fatal(err)
	}
	if text := sent.String(); strings.Contains(text, base64.StdEncoding.EncodeToString(secret["key"])) || strings.Count(text, "https://api") != 2 {
		t.Errorf("sent is %s, want the endpoint twice and no secret", text)
	}
}

// Only what can be the address of a server is taken for one.
func TestBadURLs(t *testing.T) {
	for _, url := range []string{"", "127.0.0.1:80", "ftp://host", "http://", "http://a b", "/x"} {
		if _, err := providertest.New(providertest.Options{URL: url}); err == nil {
			t.Errorf("New with %q: got no error, want one", url)
		}
		if _, err := providertest.NewAdmin(providertest.Options{URL: url}); err == nil {
			t.Errorf("NewAdmin with %q: got no error, want one", url)
		}
	}
}

// A server that was not told how to be killed refuses the faults for it, and one that is closed answers nothing more.
func TestServerAlone(t *testing.T) {
	s, err := providertest.NewServer(providertest.ServerOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(s)
	defer web.Close()
	admin, err := providertest.NewAdmin(providertest.Options{URL: web.URL})
	if err != nil {
		t.Fatal(err)
	}
	kills := []providertest.FaultKind{providertest.KillBefore, providertest.KillAfter, providertest.KillWrite}
	for _, kind := range kills {
		wantClass(t, string(kind), admin.Inject(t.Context(), providertest.Fault{Kind: kind}), provider.InvalidConfig)
	}
	p, err := providertest.New(providertest.Options{URL: web.URL})
	if err != nil {
		t.Fatal(err)
	}
	if err := admin.Inject(t.Context(), providertest.Fault{Kind: providertest.Latency, Delay: time.Hour}); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	go func() {
		_, err := p.Create(ctx, want(1, config))
		ended <- err
	}()
	for left := 1; left > 0; {
		faults, err := admin.Faults(t.Context())
		if left = len(faults); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	if err := s.Close(); err != nil || time.Since(began) > 10*time.Second {
		t.Errorf("Close took %s, with error %v: want it not to wait for a call that waits", time.Since(began), err)
	}
	wantClass(t, "a call when the server was closed", <-ended, provider.Unavailable)
	_, err = p.List(t.Context(), provider.Scope{Cluster: "c1"})
	wantClass(t, "a call after the server was closed", err, provider.Unavailable)
}

// Whatever is sent, the answer is one that a client understands, what is refused changes nothing, and the state can be read again.
func FuzzRequest(f *testing.F) {
	paths := []string{
		"/v1/Create", "/v1/Get", "/v1/List", "/v1/Delete", "/v1/Plan", "/v1/Update", "/v1/Validate", "/v1/Stop", "/v1/Reboot", "/v1/Adopt",
		"/v1/Capacity", "/v1/Console", "/v1/Resize",
	}
	made := `{"token": "t-1", "owner": {"cluster": "c1"}, "digest": "d"}`
	for n, body := range []string{
		`{"request": ` + made + `, "config": {"disks": [{"name": "a", "gib": 1}]}}`, `{"ref": {"token": "t-1"}}`, `{"cluster": "c1"}`,
		`{"ref": {"providerID": "fake:///a/t-1"}, "cluster": "c1", "mode": "Destroy"}`, `{"request": {"ref": {"token": "t-1"}, "cluster": "c1", "digest": "e"}}`,
		`{"request": {"ref": {"token": "t-1"}, "cluster": "c1", "digest": "e"}, "config": {"updates": {"image": "InPlace"}}}`, `{"config": {"zone": "b"}}`,
		`{"ref": {"token": "t-1"}}`, `{"ref": {"token": "t-1"}, "id": "x"}`, `{"from": {"token": "t-1"}, "as": {"request": {"token": "t-2", "owner": {"cluster": "c1"}}}}`,
		`{"config": {"size": "large"}}`, `{"ref": {"token": "t-1"}, "limit": -5}`, `{"name": "g", "size": 3}`,
	} {
		f.Add(uint8(n), body)
	}
	f.Fuzz(func(t *testing.T, n uint8, body string) {
		moment := time.Now()
		o := providertest.ServerOptions{Dir: t.TempDir(), NoSync: true, Now: func() time.Time { return moment }}
		s, err := providertest.NewServer(o)
		if err != nil {
			t.Fatal(err)
		}
		send(s, http.MethodPost, "/v1/Create", `{"request": `+made+`}`)
		before := send(s, http.MethodGet, "/instances", "").Body.String()
		reply := send(s, http.MethodPost, paths[int(n)%len(paths)], body)
		var e struct{ Class, Message string }
		switch {
		case !json.Valid(reply.Body.Bytes()):
			t.Errorf("got %d %q, want JSON", reply.Code, reply.Body)
		case reply.Code == http.StatusOK:
		case json.Unmarshal(reply.Body.Bytes(), &e) != nil || e.Message == "" || e.Class == "Internal" || e.Class == "Unavailable":
			t.Errorf("got %d %q, want an error that is the caller's", reply.Code, reply.Body)
		case send(s, http.MethodGet, "/instances", "").Body.String() != before:
			t.Errorf("%d %q has changed what is there", reply.Code, reply.Body)
		}
		is := send(s, http.MethodGet, "/instances", "").Body.String()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if s, err = providertest.NewServer(o); err != nil {
			t.Fatal(err)
		}
		if again := send(s, http.MethodGet, "/instances", "").Body.String(); again != is {
			t.Errorf("after a restart: got %s, want %s", again, is)
		}
		_ = s.Close()
	})
}

func send(s *providertest.Server, method, path, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
	return w
}
