// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package exec_test

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/internal/testproc"
	"github.com/belayproject/belay/machine/provider"
	"github.com/belayproject/belay/machine/provider/exec"
)

// good is the reply to the create of a request.
func good(r provider.CreateRequest) string {
	return fmt.Sprintf(`{"instance":{"token":%q,"providerID":"x:///%s","state":"Running","owner":{"cluster":"c1"}}}`, r.Token, r.Token)
}

// Each reply has one meaning: what can't be about the request is Internal, and believed by nobody (R-MA-08).
func TestRepliesAreJudged(t *testing.T) {
	r := request(1)
	echo := func(text string) string { return "cat >/dev/null; echo '" + text + "'" }
	for name, c := range map[string]struct {
		script string
		class  provider.Class
		says   string
	}{
		"good":               {echo(good(r)), "", ""},
		"unknown fields":     {echo(strings.Replace(good(r), `{"instance":{`, `{"new":[1],"instance":{"newer":{},`, 1)), "", ""},
		"nothing read":       {"exec <&-; echo '" + good(r) + "'", "", ""},
		"other token":        {echo(strings.ReplaceAll(good(r), r.Token, "other-1")), provider.Internal, `about token "other-1"`},
		"other ProviderID":   {echo(strings.Replace(good(r), "x:///", "x:///1", 1)), provider.Internal, "ends in"},
		"no ProviderID":      {echo(strings.Replace(good(r), "providerID", "providerId2", 1)), provider.Internal, "without a ProviderID"},
		"unknown state":      {echo(strings.Replace(good(r), "Running", "Flying", 1)), provider.Internal, `"Flying"`},
		"no instance":        {echo("{}"), provider.Internal, "no instance"},
		"wrong form":         {echo(`{"instance":{"token":7}}`), provider.Internal, "instance.token"},
		"a list":             {echo("[]"), provider.Internal, "no JSON object"},
		"null":               {echo("null"), provider.Internal, "no JSON object"},
		"empty":              {"cat >/dev/null", provider.Internal, "no JSON object"},
		"two objects":        {echo(good(r) + good(r)), provider.Internal, "goes on"},
		"class":              {echo(`{"error":{"class":"Stockout","message":"no room"}}`), provider.Stockout, "no room"},
		"class and code":     {echo(`{"error":{"class":"Conflict","message":"in use"}}`) + "; exit 4", provider.Conflict, "in use"},
		"unknown class":      {echo(`{"error":{"class":"Moody","message":"hm"}}`), provider.Internal, "hm"},
		"error and instance": {echo(`{"error":{"class":"NotFound","message":"gone"},` + good(r)[1:]), provider.NotFound, "gone"},
		"code alone":         {"cat >/dev/null; echo no luck >&2; exit 4", provider.Internal, "exit code 4; it says: no luck"},
		"code and instance":  {echo(good(r)) + "; exit 4", provider.Internal, "exit code 4"},
		"killed":             {"kill -9 $$", provider.Internal, "exit code"},
	} {
		p, _ := scripted(t, nil, map[string]string{"create": c.script})
		i, err := p.Create(t.Context(), r)
		wantClass(t, name, err, c.class)
		if c.class == "" && (err != nil || i.Token != r.Token || i.State != provider.Running) || c.class != "" && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %+v, %v, want %q", name, i, err, c.says)
		}
	}
}

// The other verbs are judged too.
func TestOtherRepliesAreJudged(t *testing.T) {
	echo := func(text string) string { return "echo '" + text + "'" }
	p, dir := scripted(t, nil, map[string]string{
		"list": echo(`{"instances":[{"token":"a-1","state":"Pending","owner":{"cluster":"c2"}}]}`), "get": echo(`{}`), "delete": echo(`{"progress":{"done":true}}`),
		"plan": echo(`{"plan":{"method":"Magic"}}`), "update": echo(`{"plan":{}}`), "capacity": echo(`{"capacity":{}}`), "validate": echo(`{}`),
		"stop": echo(`{"progress":{"done":true}}`), "reboot": echo(`{"progress":{}}`), "console": echo(`{"console":"` + base64.StdEncoding.EncodeToString([]byte("0123456789")) + `"}`),
		"adopt": echo(`{"instance":{"token":"from-1","state":"Pending"}}`),
	})
	ctx, ref := t.Context(), provider.Ref{ProviderID: "x:///a-1"}
	if _, err := p.List(ctx, provider.Scope{Cluster: "c1"}); provider.ClassOf(err) != provider.Internal || !strings.Contains(err.Error(), `"c2"`) {
		t.Errorf("List with an instance of another cluster: got %v", err)
	}
	_, err := p.Get(ctx, ref)
	wantClass(t, "Get without an instance", err, provider.Internal)
	if got, err := p.Delete(ctx, provider.DeleteRequest{Ref: ref, Cluster: "c1"}); err != nil || !got.Done || !got.Stopped {
		t.Errorf("Delete: got %+v, %v, want Done and so Stopped", got, err)
	}
	if in, err := os.ReadFile(filepath.Join(dir, "delete.in")); err != nil || string(in) != `{"ref":{"token":"a-1","providerID":"x:///a-1"},"mode":"Retain","cluster":"c1"}` {
		t.Errorf("the request was %s, %v, want the token of the ProviderID, and Retain where nothing is said", in, err)
	}
	_, err = p.Delete(ctx, provider.DeleteRequest{Ref: ref, Mode: "destroy", Cluster: "c1"})
	wantClass(t, "Delete with a mode that is none", err, provider.InvalidConfig)
	for _, token := range []string{"", "../x", "A"} {
		_, err := p.Get(ctx, provider.Ref{Token: token})
		wantClass(t, fmt.Sprintf("Get of token %q", token), err, provider.InvalidConfig)
	}
	repliesOfAbilities(t, provider.AbilitiesOf(p), ref, dir)
}

func repliesOfAbilities(t *testing.T, can provider.Abilities, ref provider.Ref, dir string) {
	ctx := t.Context()
	_, err := can.Planner.Plan(ctx, provider.UpdateRequest{Ref: ref})
	wantClass(t, "Plan with an unknown method", err, provider.Internal)
	_, err = can.Updater.Update(ctx, provider.UpdateRequest{Ref: ref})
	wantClass(t, "Update without progress", err, provider.Internal)
	_, err = can.Capacity.Capacity(ctx, provider.Desired{})
	wantClass(t, "Capacity of nothing", err, provider.Internal)
	_, err = can.Adopter.Adopt(ctx, provider.AdoptRequest{From: provider.Ref{Token: "from-1"}, As: request(1)})
	wantClass(t, "Adopt that returns the old one", err, provider.Internal)
	if err := can.Validator.Validate(ctx, provider.Desired{}); err != nil {
		t.Errorf("Validate: %v", err)
	}
	if got, err := can.Power.Stop(ctx, ref); err != nil || !got.Done || !got.Stopped {
		t.Errorf("Stop: got %+v, %v", got, err)
	}
	if got, err := can.Power.Reboot(ctx, ref, "b1"); err != nil || got.Done {
		t.Errorf("Reboot: got %+v, %v", got, err)
	}
	if in, err := os.ReadFile(filepath.Join(dir, "reboot.in")); err != nil || string(in) != `{"ref":{"token":"a-1","providerID":"x:///a-1"},"id":"b1"}` {
		t.Errorf("the request was %s, %v", in, err)
	}
	if got, err := can.Console.Console(ctx, ref, 4); err != nil || string(got) != "6789" {
		t.Errorf("Console: got %q, %v, want the last 4 bytes", got, err)
	}
}

// RateLimited says when to call again, within a day.
func TestAfter(t *testing.T) {
	for seconds, want := range map[string]time.Duration{"7": 7 * time.Second, "0.5": 500 * time.Millisecond, "-3": 0, "1e300": 24 * time.Hour} {
		p, _ := scripted(t, nil, map[string]string{"get": `echo '{"error":{"class":"RateLimited","message":"slow down","afterSeconds":` + seconds + `}}'`})
		_, err := p.Get(t.Context(), provider.Ref{Token: "a-1"})
		if provider.ClassOf(err) != provider.RateLimited || provider.AfterOf(err) != want {
			t.Errorf("%s: got %v after %s, want %s", seconds, err, provider.AfterOf(err), want)
		}
	}
}

// Secrets are on standard input alone, and in no error and no message, in whatever form the program says them.
func TestSecretsAreHidden(t *testing.T) {
	const secret, pem = "p4ss/word+\"quoted\"", "-----BEGIN KEY-----\nMIIBVgIBADANBgkqhkiG9w0BAQEF\n-----END KEY-----\n"
	r := request(1)
	r.Join = provider.Join{Bootstrap: map[string][]byte{"token": []byte(secret)}, Credentials: map[string][]byte{"key": []byte(pem + ""), "short": []byte("a")}}
	forms := []string{secret, `p4ss/word+\"quoted\"`, base64.StdEncoding.EncodeToString([]byte(secret)), hex.EncodeToString([]byte(secret)),
		"MIIBVgIBADANBgkqhkiG9w0BAQEF", "p4ss%2Fword%2B%22quoted%22"}
	p, dir := scripted(t, nil, map[string]string{"create": "env >env; cat said >&2; exit 1", "adopt": "cat said.json"})
	said := "the password " + strings.Join(forms, " or ") + " is wrong"
	for name, text := range map[string]string{
		"said":      strings.Repeat("x", 16<<10) + " " + said,
		"said.json": fmt.Sprintf(`{"error":{"class":"Unauthorized","message":%q}}`, said),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, err := p.Create(t.Context(), r)
	wantClass(t, "Create", err, provider.Internal)
	adopter := provider.AbilitiesOf(p).Adopter
	_, errAdopt := adopter.Adopt(t.Context(), provider.AdoptRequest{From: provider.Ref{Token: "a-1"}, As: r})
	wantClass(t, "Adopt", errAdopt, provider.Unauthorized)
	for _, err := range []error{err, errAdopt} {
		if !strings.Contains(err.Error(), "[secret] is wrong") {
			t.Errorf("got %v, want what the program says", err)
		}
		for _, form := range forms {
			if strings.Contains(err.Error(), form) {
				t.Errorf("the error has %q: %v", form, err)
			}
		}
	}
	if in, err := os.ReadFile(filepath.Join(dir, "create.in")); err != nil || !strings.Contains(string(in), base64.StdEncoding.EncodeToString([]byte(secret))) {
		t.Errorf("the program was not given the secret: %v", err)
	}
	env, err := os.ReadFile(filepath.Join(dir, "env"))
	if err != nil || strings.Contains(string(env), "p4ss") || !strings.Contains(string(env), "DIR=") {
		t.Errorf("its environment is %q, %v", env, err)
	}
}

// A secret that was cut where the end of standard error begins shows no part of itself.
func TestSecretIsCut(t *testing.T) {
	const secret = "0123456789abcdefghijklmnopqrstuv"
	r := request(1)
	r.Join.Bootstrap = map[string][]byte{"token": []byte(secret)}
	// 16 KiB are kept, so that half of the secret is the first of it; blanks are one in the error.
	p, _ := scripted(t, nil, map[string]string{"create": "printf '%s%16368s' " + secret + " end >&2; exit 1"})
	_, err := p.Create(t.Context(), r)
	if err == nil || strings.Contains(err.Error(), "klmno") || strings.Contains(err.Error(), "uv") || !strings.Contains(err.Error(), "it says: end") {
		t.Errorf("got %v, want the end without the secret", err)
	}
}

// A program that hangs is killed with all that it has started, when ctx ends or its time is over.
func TestProgramIsKilled(t *testing.T) {
	const hang = "sleep 1000003 & echo begun >begun; sleep 1000003"
	p, dir := scripted(t, nil, map[string]string{"get": hang})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		_ = testproc.Poll(within, func() error { _, err := os.Stat(filepath.Join(dir, "begun")); return err })
		cancel()
	}()
	_, err := p.Get(ctx, provider.Ref{Token: "a-1"})
	if wantClass(t, "Get that was cancelled", err, provider.Unavailable); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want it to be that of ctx", err)
	}
	wantNone(t, dir)
	p, dir = scripted(t, func(o *exec.Options) { o.Timeout = 3 * time.Second }, map[string]string{"get": hang})
	began := time.Now()
	_, err = p.Get(t.Context(), provider.Ref{Token: "a-1"})
	if wantClass(t, "Get that takes too long", err, provider.Unavailable); !strings.Contains(err.Error(), "longer than 3s") || time.Since(began) > within {
		t.Errorf("got %v after %s, want its limit of 3s", err, time.Since(began))
	}
	wantNone(t, dir)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := os.Remove(filepath.Join(dir, "get.in")); err != nil {
		t.Fatal(err)
	}
	_, err = p.Get(ended, provider.Ref{Token: "a-1"})
	if wantClass(t, "Get with a ctx that has ended", err, provider.Unavailable); !strings.Contains(err.Error(), "was not called") {
		t.Errorf("got %v, want it to say that nothing was done", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "get.in")); err == nil {
		t.Error("the program was called all the same")
	}
}

func wantNone(t *testing.T, dir string) {
	t.Helper()
	err := testproc.Poll(within, func() error {
		if left := testproc.Naming("DIR=" + dir); len(left) > 0 {
			return fmt.Errorf("processes are left: %q", left)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// A program that writes without end is killed, and no more is kept than is allowed.
func TestOutputIsBounded(t *testing.T) {
	p, dir := scripted(t, func(o *exec.Options) { o.MaxOutput = 1000 }, map[string]string{"get": "cat /dev/zero", "list": "head -c 900 /dev/zero"})
	_, err := p.Get(t.Context(), provider.Ref{Token: "a-1"})
	if wantClass(t, "Get", err, provider.Internal); !strings.Contains(err.Error(), "more than 1000 bytes") {
		t.Errorf("got %v, want the limit", err)
	}
	wantNone(t, dir)
	_, err = p.List(t.Context(), provider.Scope{Cluster: "c1"})
	if wantClass(t, "List", err, provider.Internal); !strings.Contains(err.Error(), "900 bytes of output are no JSON") {
		t.Errorf("got %v", err)
	}
}

// What a program leaves running in its group does not hold up the call, and is ended.
func TestLeftoversAreEnded(t *testing.T) {
	p, dir := scripted(t, nil, map[string]string{"get": "sleep 1000004 & echo '{\"error\":{\"class\":\"NotFound\",\"message\":\"gone\"}}'"})
	_, err := p.Get(t.Context(), provider.Ref{Token: "a-1"})
	wantClass(t, "Get", err, provider.NotFound)
	wantNone(t, dir)
}

// A program has the abilities that it names, and no other is called. Without create or delete, or with another protocol, it is none (R-MA-09).
func TestAbilities(t *testing.T) {
	p, dir := scripted(t, nil, map[string]string{"abilities": `cat >hello; echo '{"protocol":1,"abilities":["create","delete","stop","console","fly"]}'`})
	if in, err := os.ReadFile(filepath.Join(dir, "hello")); err != nil || string(in) != `{"protocol":1}` {
		t.Errorf("it was asked %q, %v", in, err)
	}
	can := provider.AbilitiesOf(p)
	if can.Console == nil {
		t.Error("it has no Console")
	}
	can.Console = nil
	if can != (provider.Abilities{}) {
		t.Errorf("got more abilities than it has: %+v", can) // stop without reboot is none
	}
	_, err := p.Get(t.Context(), provider.Ref{Token: "a-1"})
	wantClass(t, "Get", err, provider.NotSupported)
	_, err = p.List(t.Context(), provider.Scope{Cluster: "c1"})
	wantClass(t, "List", err, provider.NotSupported)
	for name, c := range map[string]struct {
		says  string
		class provider.Class
	}{
		"other protocol": {`{"protocol":2,"abilities":["create","delete"]}`, provider.NotSupported},
		"no delete":      {`{"protocol":1,"abilities":["create"]}`, provider.NotSupported},
		"refused":        {`{"error":{"class":"Unauthorized","message":"no"}}`, provider.Unauthorized},
		"nothing":        {``, provider.Internal},
	} {
		if err := os.WriteFile(filepath.Join(dir, "abilities"), []byte("echo '"+c.says+"'"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := exec.New(t.Context(), exec.Options{Path: "/bin/sh", Args: []string{"-c", script, "sh"}, Env: []string{"DIR=" + dir, "PATH=" + os.Getenv("PATH")}})
		wantClass(t, name, err, c.class)
	}
	for _, o := range []exec.Options{{}, {Path: "x", Timeout: -1}, {Path: "x", MaxOutput: -1}} {
		_, err := exec.New(t.Context(), o)
		wantClass(t, fmt.Sprintf("%+v", o), err, provider.InvalidConfig)
	}
	_, err = exec.New(t.Context(), exec.Options{Path: "/no/such/program"})
	wantClass(t, "no program", err, provider.Unavailable)
}

// A provider that can only create and delete can be served, and is the same on the other side (R-MA-09).
func TestServeOfLittle(t *testing.T) {
	p, err := exec.New(t.Context(), exec.Options{Path: os.Args[0], Args: []string{"serve-memory"}})
	if err != nil {
		t.Fatal(err)
	}
	if can := provider.AbilitiesOf(p); can != (provider.Abilities{}) {
		t.Errorf("got abilities %+v, want none", can)
	}
	r := request(1)
	if i, err := p.Create(t.Context(), r); err != nil || i.State != provider.Pending || i.Owner != r.Owner {
		t.Errorf("Create: got %+v, %v", i, err)
	}
	_, err = p.Get(t.Context(), provider.Ref{Token: r.Token})
	wantClass(t, "Get", err, provider.NotSupported)
	for verb, in := range map[string]string{"create": `{"token":7}`, "stop": "{}", "fly": "{}", "delete": ""} {
		var out strings.Builder
		if err := exec.Serve(t.Context(), provider.Minimal(little{}), verb, strings.NewReader(in), &out); err != nil || !strings.Contains(out.String(), `{"error":{"class":`) {
			t.Errorf("%s with %q: got %q, %v, want an error in the reply", verb, in, out.String(), err)
		}
	}
}
