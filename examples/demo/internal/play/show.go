// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package play

import (
	"fmt"
	"time"

	"github.com/belayproject/belay/examples/demo/internal/story"
	"github.com/belayproject/belay/examples/internal/screen"
)

// textWidth is how wide sentences are written at most.
const textWidth = 100

// announce says what a step does and what should happen.
func (p *Player) announce(n, of int, s story.Step) {
	paint := p.o.Screen.Palette()
	p.o.Screen.Say("", paint.Paint(screen.Strong, fmt.Sprintf("[%d/%d] %s", n, of, s.Title())))
	p.say(s.Push)
	p.say(s.Expect)
}

// conclude says what happened.
func (p *Player) conclude(r story.Result) {
	paint, mark, tone := p.o.Screen.Palette(), "ok   ", screen.Good
	if !r.OK() {
		mark, tone = "NOT  ", screen.Bad
	}
	for i, l := range screen.Wrap(r.Sentence(), p.width()) {
		if i > 0 {
			mark = "     "
		}
		p.o.Screen.Say(paint.Paint(tone, mark) + l)
	}
	for _, l := range r.DescribeRefusals() {
		p.say(l)
	}
	for _, l := range r.Unseen() {
		p.say("- " + l)
	}
}

// say writes a sentence below a step's title.
func (p *Player) say(text string) {
	for _, l := range screen.Wrap(text, p.width()) {
		p.o.Screen.Say("     " + l)
	}
}

// width leaves room for the indent.
func (p *Player) width() int { return min(p.o.Screen.Width(), textWidth) - 6 }

// show draws the table.
func (p *Player) show(s story.Step, marks []story.Mark, o observation) {
	v := screen.View{Layout: story.Layout()}
	for i, seen := range o.seen {
		v.Rows = append(v.Rows, s.Row(p.o.Known, marks[i], seen))
	}
	v.Head = screen.Cell{Text: " ", Tone: screen.Plain}
	clock := o.at.Sub(p.began).Round(time.Second)
	v.Foot = screen.Cell{Text: fmt.Sprintf("%s  reports read from the API server", clock), Tone: screen.Faint}
	if o.server != nil {
		v.Foot = screen.Cell{Text: fmt.Sprintf("%s  THE API SERVER IS DOWN: reports read from each node's agent", clock), Tone: screen.Pending}
	}
	p.o.Screen.Update(v)
}
