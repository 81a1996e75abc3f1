"""The look of a page: light and dark by the reader's own setting, narrow screens, and paper."""

from __future__ import annotations

CSS = """
:root { color-scheme: light dark; --ink: #1c2128; --soft: #59636e; --line: #d5d9de; --page: #ffffff; --card: #f6f8fa;
  --good: #1a7f4b; --bad: #b3263f; --unsure: #8a6100; --goodback: #e3f4ea; --badback: #fbe6ea; --unsureback: #fbf1d6;
  --lead: #2b6ca3; --leadback: #dbe8f4; --sampled: #b4531c; --sampledback: #fbe0cf; --fill: #7d8791; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ed; --soft: #9aa5b1; --line: #3a424c; --page: #14181d;
  --card: #1c2229; --good: #5fcf92; --bad: #ff8095; --unsure: #e6bd58; --goodback: #173526; --badback: #421c25;
  --unsureback: #3b3015; --lead: #7db4e6; --leadback: #1d3347; --sampled: #f0a071; --sampledback: #452a1a;
  --fill: #8b96a1; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1rem 3rem; max-width: 84rem; background: var(--page); color: var(--ink);
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .5rem; }
h2 { font-size: 1.25rem; margin: 2.5rem 0 .5rem; border-bottom: 1px solid var(--line); padding-bottom: .25rem; }
h3 { font-size: 1.1rem; margin: 0; } h4 { font-size: .95rem; margin: 1.4rem 0 .4rem; }
p { margin: .4rem 0; max-width: 46rem; } small, .soft { color: var(--soft); } a { color: var(--lead); }
code, pre { font: .85em/1.45 ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; }
pre { background: var(--card); border: 1px solid var(--line); border-radius: 6px; padding: .7rem; overflow-x: auto;
  overflow-wrap: normal; }
.banner { border-radius: 8px; padding: .8rem 1rem; margin: 1rem 0; border-left: 5px solid; }
.banner p:first-child { font-size: 1.2rem; font-weight: 650; margin: 0; }
.good { color: var(--good); } .bad { color: var(--bad); } .unsure { color: var(--unsure); }
.banner.good, .mark.good { background: var(--goodback); } .banner.bad, .mark.bad { background: var(--badback); }
.banner.unsure, .mark.unsure { background: var(--unsureback); } .banner p + p { color: var(--ink); }
.mark { display: inline-block; border-radius: 1rem; padding: 0 .6rem; font-size: .85rem; font-weight: 650;
  white-space: nowrap; }
article { border: 1px solid var(--line); border-radius: 8px; padding: 1rem; margin: 1.2rem 0; }
article > header { display: flex; flex-wrap: wrap; gap: .3rem .6rem; align-items: baseline; }
.scope { color: var(--soft); font-size: .85rem; }
.wrong { border-left: 4px solid var(--bad); padding: .1rem 0 .1rem .8rem; margin: .8rem 0; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .88rem; margin: .4rem 0; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .2rem .7rem .2rem 0; border-bottom: 1px solid var(--line); vertical-align: top;
  white-space: nowrap; }
th { font-weight: 600; color: var(--soft); white-space: nowrap; }
td.off { color: var(--bad); font-weight: 600; } td.bar { width: 12rem; min-width: 8rem; vertical-align: middle; }
.number { white-space: nowrap; } details.number code { white-space: normal; overflow-wrap: anywhere; display: block;
  max-width: 24rem; }
figure > svg:not(.tree) { margin-bottom: .2rem; }
summary { cursor: pointer; } dt { font-weight: 600; margin-top: .5rem; } dd { margin: 0; max-width: 46rem; }
.legend + .trees, details.more { margin-top: .7rem; }
.trees { display: flex; flex-wrap: wrap; gap: 1rem 1.5rem; align-items: flex-start; }
figure { margin: 0; max-width: 100%; overflow-x: auto; } figcaption { font-size: .85rem; margin-bottom: .2rem; }
svg { display: block; } .wrong > svg, figure > svg:not(.tree) { max-width: 24rem; } svg.tree { max-width: none; }
svg text { fill: var(--ink); }
svg .score { fill: var(--soft); } svg .branch { stroke: var(--soft); fill: none; } svg .root { fill: var(--ink); }
svg .lead { fill: var(--leadback); stroke: var(--lead); } svg .fill { fill: var(--page); stroke: var(--fill); }
svg .sampled { fill: var(--sampledback); stroke: var(--sampled); } svg .track { fill: var(--line); }
svg .right { fill: var(--good); } svg .off { fill: var(--bad); } svg .plain { fill: var(--lead); }
svg .due { fill: var(--ink); } .legend { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; font-size: .85rem;
  color: var(--soft); align-items: center; } .legend span { display: inline-flex; gap: .35rem; align-items: center; }
@media (max-width: 40rem) { body { padding: 1rem .7rem 2rem; } article { padding: .7rem; }
  td.bar { min-width: 5rem; width: 5rem; } h1 { font-size: 1.35rem; } }
@media print { :root { --ink: #000; --soft: #444; --line: #bbb; --page: #fff; --card: #fff; --good: #14633a;
  --bad: #9c1c34; --unsure: #6d4c00; --goodback: #fff; --badback: #fff; --unsureback: #fff; --lead: #1f5a8c;
  --leadback: #e4eef7; --sampled: #9c4515; --sampledback: #fce9de; --fill: #666; }
  body { max-width: none; padding: 0; font-size: 10pt; } pre { white-space: pre-wrap; }
  figure, tr, .banner, .wrong { break-inside: avoid; } h2, h3, h4 { break-after: avoid; }
  .scroll, figure { overflow: visible; } svg { print-color-adjust: exact; }
  details::details-content { content-visibility: visible; height: auto; } }
"""
