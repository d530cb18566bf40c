// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package ssh

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	_ "embed" // for the scripts

	"github.com/belayproject/belay/machine/provider"
)

var (
	//go:embed agent.sh
	agentScript string
	//go:embed run.sh
	runScript string
)

// keepUsed is how many tokens a host remembers that were used up.
const keepUsed = 4096

// A request is what a host is asked: to look, and before that to exchange its claim.
type request struct {
	token string // whether it is used up
	tail  int    // bytes of console
	swap  *swap
}

// A swap exchanges a claim if it is what is expected. All of it is done, or nothing; what is cut off between is done again by the same swap or the next.
type swap struct {
	expect, next string // "" is no claim
	forbid       string // not if this token is used up here
	spend        string // this token is used up from now on
	when         string // not in another boot
	put          string // the files of a step are written
	files        []file
	start        string // a step is begun, if it was not, and all others are ended
}

type file struct {
	name string
	data []byte
}

// quote makes a text one word of a shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// script is what is sent to a host. The secrets in it are words of a shell's built-in commands, and never arguments of a program.
func (r request) script(nonce, dir, bootFile string) string {
	var b strings.Builder
	set := func(name, value string) { fmt.Fprintf(&b, "b_%s=%s\n", name, quote(value)) }
	op, s := "look", swap{}
	if r.swap != nil {
		op, s = "swap", *r.swap
	}
	set("op", op)
	set("nonce", nonce)
	set("dir", dir)
	set("bootfile", bootFile)
	set("token", r.token)
	set("tail", strconv.Itoa(r.tail))
	set("keep", strconv.Itoa(keepUsed))
	set("expect", s.expect)
	set("next", s.next)
	set("forbid", s.forbid)
	set("spend", s.spend)
	set("when", s.when)
	set("put", s.put)
	set("start", s.start)
	b.WriteString("b_files() {\n:\n")
	for _, f := range s.files {
		fmt.Fprintf(&b, "b_file %s %s || return 1\n", quote(f.name), quote(base64.StdEncoding.EncodeToString(f.data)))
	}
	b.WriteString("}\n")
	b.WriteString(agentScript)
	return b.String()
}

// wipe removes the data and nothing else: not what is mounted below, and not what a link leads to.
const wipe = `[ ! -d "$BELAY_DATA" ] || find "$BELAY_DATA" -xdev -mindepth 1 -delete || exit 1
rmdir "$BELAY_DATA" 2>/dev/null
[ ! -d "$BELAY_DATA" ] || [ -z "$(find "$BELAY_DATA" -mindepth 1 | head -n 1)" ]
`

// scripts of a step are run one after the other, until one fails.
func (s spec) scripts(k kind) []string {
	var all []string
	switch k {
	case bootstrapStep:
		all = []string{s.Config.Bootstrap}
	case updateStep:
		all = []string{s.Config.Update}
	case startStep:
		all = []string{s.Config.Start}
	case stopStep:
		all = []string{s.Config.Stop, s.Config.Stopped}
	case cleanupStep:
		all = []string{s.Config.Cleanup, wipe}
	case rebootStep:
		all = []string{s.Config.RebootCommand}
	}
	return slices.DeleteFunc(all, func(text string) bool { return strings.TrimSpace(text) == "" })
}

// files are those of a step. The last one says that all are there.
func (s spec) files(h Host, st step, join provider.Join, bootFile string) []file {
	secret := st.Kind == bootstrapStep || st.Kind == updateStep
	if !secret {
		join = provider.Join{}
	}
	var all []file
	for _, key := range slices.Sorted(maps.Keys(join.Bootstrap)) {
		all = append(all, file{"join/" + key, join.Bootstrap[key]})
	}
	for i, text := range s.scripts(st.Kind) {
		all = append(all, file{"script." + strconv.Itoa(i), []byte(text + "\n")})
	}
	input := struct {
		Token      string            `json:"token"`
		ProviderID string            `json:"providerID"`
		Owner      provider.Owner    `json:"owner"`
		Desired    provider.Desired  `json:"desired"`
		Endpoint   string            `json:"endpoint,omitempty"`
		Bootstrap  map[string][]byte `json:"bootstrap,omitempty"`
	}{s.Token, providerID(h.Name, s.Token), s.Owner, s.Desired, s.Endpoint, join.Bootstrap}
	doc, _ := json.Marshal(input) // strings, maps of them and bytes can always be encoded
	return append(all, file{"stdin", doc}, file{"env", []byte(s.environment(h, st, bootFile))}, file{"run", []byte(runScript)})
}

func (s spec) environment(h Host, st step, bootFile string) string {
	var b strings.Builder
	marker := ""
	if st.Kind == bootstrapStep || st.Kind == updateStep || st.Kind == startStep {
		marker = "1"
	}
	for _, v := range [][2]string{
		{"belay_step", st.ID}, {"belay_marker", marker}, {"belay_bootfile", bootFile}, {"belay_timeout", strconv.FormatInt(s.Config.TimeoutSeconds, 10)},
	} {
		fmt.Fprintf(&b, "%s=%s\n", v[0], quote(v[1]))
	}
	for _, v := range [][2]string{
		{"TOKEN", s.Token}, {"PROVIDER_ID", providerID(h.Name, s.Token)}, {"HOST", h.Name}, {"DATA", h.data()}, {"STEP", string(st.Kind)},
		{"CLUSTER", s.Owner.Cluster}, {"NAMESPACE", s.Owner.Namespace}, {"NAME", s.Owner.Name}, {"UID", s.Owner.UID},
		{"INCARNATION", strconv.FormatInt(s.Owner.Incarnation, 10)}, {"FROM", s.From}, {"ENDPOINT", s.Endpoint},
		{"KUBELET_VERSION", s.Desired.Versions.Kubelet}, {"RUNTIME_NAME", s.Desired.Versions.Runtime.Name},
		{"RUNTIME_VERSION", s.Desired.Versions.Runtime.Version}, {"JOIN", h.Directory + "/steps/" + st.ID + "/join"},
	} {
		fmt.Fprintf(&b, "export BELAY_%s=%s\n", v[0], quote(v[1]))
	}
	return b.String()
}

// checkJoin refuses names that can't be files. A Secret's keys always can.
func checkJoin(j provider.Join) error {
	for key := range j.Bootstrap {
		plain := func(r rune) bool {
			return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.'
		}
		if key == "" || len(key) > 253 || strings.HasPrefix(key, ".") || strings.HasSuffix(key, ".new") ||
			strings.ContainsFunc(key, func(r rune) bool { return !plain(r) }) {
			return provider.Errorf(provider.InvalidConfig, "bootstrap key %.80q is no plain file name: want letters, digits, dashes, dots and underscores", key)
		}
	}
	return nil
}
