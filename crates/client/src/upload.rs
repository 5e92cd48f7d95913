//! Sends the files of a folder to a server that cannot fetch them: only what it does not have.

mod files;
mod part;

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use launchway_domain::sources::{BlockId, BlockIds, MadeBlock};
use serde::Deserialize;
use serde_json::{Value, json};

pub(crate) use self::files::Folder;
use self::part::PartWriter;
use crate::{
    failure::{Failure, Kind, Outcome, failed},
    progress::{Bar, size},
    screen::{Screen, visible},
    server::{Server, fresh_key, retry_for},
};

/// The time for which a request is sent again while the server is unreachable.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The number of times that blocks are sent that a server removed meanwhile.
const ROUNDS: usize = 3;

/// Sends the files of a folder.
pub(crate) struct Uploader<'a> {
    server: &'a Server,
    screen: &'a Screen,
    folder: &'a Folder,
    /// The bytes of the bodies of requests.
    sent: u64,
}

#[derive(Deserialize)]
struct Missing {
    missing: Vec<String>,
}

impl<'a> Uploader<'a> {
    pub(crate) fn new(server: &'a Server, screen: &'a Screen, folder: &'a Folder) -> Self {
        Self { server, screen, folder, sent: 0 }
    }

    /// Sends what the server lacks, and deploys it by a request with the fields of `target`.
    pub(crate) fn deploy(mut self, target: &Value) -> Outcome<Value> {
        let begun = Instant::now();
        let mut body = target.clone();
        body["digest"] = self.folder.list.digest().to_string().into();
        let mut missing = self.changed()?;
        for round in 1.. {
            self.send(missing)?;
            self.sent += body.to_string().len() as u64;
            let key = fresh_key()?;
            let request = || {
                self.server
                    .post("/deploy/application/source/files")
                    .body(body.clone())
                    .once(&key)
                    .slow()
                    .send()
            };
            match retry_for(TIMEOUT, request, |failure| self.screen.remark(&lost(failure))) {
                // The server may have removed blocks since it was asked.
                Err(failure) if failure.kind == Kind::Conflict && round < ROUNDS => {
                    missing = self.all_missing()?;
                    if missing.is_empty() {
                        return Err(failure);
                    }
                }
                deployed => {
                    let deployed = deployed?;
                    let seconds = begun.elapsed().as_secs_f32();
                    self.screen.remark(&format!("Uploaded {} in {seconds:.1} s", size(self.sent)));
                    return Ok(deployed);
                }
            }
        }
        Err(Failure::new(Kind::Unavailable, "the server removed files of this upload again and again"))
    }

    /// Returns the blocks that the server lacks. What is below a block that it has is not asked about.
    fn changed(&mut self) -> Outcome<HashSet<BlockId>> {
        let folder = self.folder;
        let levels: Vec<&[MadeBlock]> = folder.list.levels().collect();
        let root = 0..1;
        let (mut missing, mut wanted) = (HashSet::new(), vec![root]);
        for level in levels {
            let asked: Vec<&MadeBlock> = wanted.iter().flat_map(|range| &level[range.clone()]).collect();
            let lacks = self.ask(asked.iter().map(|block| block.id))?;
            let lacking = asked.into_iter().filter(|block| lacks.contains(&block.id));
            wanted = lacking.map(|block| block.children.clone()).collect();
            missing.extend(lacks);
        }
        let files = wanted.into_iter().flat_map(|range| &folder.files[range]);
        missing.extend(self.ask(files.flat_map(|file| file.blocks.iter().copied()))?);
        Ok(missing)
    }

    fn all_missing(&mut self) -> Outcome<HashSet<BlockId>> {
        let folder = self.folder;
        let list = folder.list.levels().flatten().map(|block| block.id);
        self.ask(list.chain(folder.places.keys().copied()))
    }

    /// Returns those of `ids` that the server lacks.
    fn ask(&mut self, ids: impl Iterator<Item = BlockId>) -> Outcome<HashSet<BlockId>> {
        let ids: Vec<BlockId> = ids.collect::<HashSet<_>>().into_iter().collect();
        let mut lacks = HashSet::new();
        for some in ids.chunks(BlockIds::MOST) {
            let body = json!({"blocks": some.iter().map(ToString::to_string).collect::<Vec<_>>()});
            self.sent += body.to_string().len() as u64;
            let request = || {
                let path = "/deploy/application/source/blocks/missing";
                self.server.post(path).body(body.clone()).receive::<Missing>()
            };
            let answer = retry_for(TIMEOUT, request, |failure| self.screen.remark(&lost(failure)))?;
            for id in answer.missing {
                let odd =
                    |_| Failure::new(Kind::Failed, format!("the server asks for `{id}`, which is no block"));
                lacks.insert(id.parse().map_err(odd)?);
            }
        }
        Ok(lacks)
    }

    /// Sends blocks: those of files in the order of their paths, and those of the list last, so that a server that has a
    /// block of the list has its files.
    fn send(&mut self, missing: HashSet<BlockId>) -> Outcome {
        let folder = self.folder;
        let mut places: Vec<_> =
            missing.iter().filter_map(|id| folder.places.get(id).map(|place| (*id, *place))).collect();
        places.sort_unstable_by_key(|(_, place)| (place.file, place.offset));
        let bytes = places.iter().map(|(_, place)| place.length).sum();
        let files = places.iter().map(|(_, place)| place.file).collect::<HashSet<_>>().len();
        let mut bar = Bar::new(self.screen, bytes, files);
        if !missing.is_empty() {
            let (count, all) = (folder.count(), size(folder.bytes()));
            let new = if files == count { String::new() } else { format!(": {files} new or changed") };
            bar.print(&format!("Uploading {count} files, {all}{new}"));
        }
        let (mut part, mut last) = (PartWriter::new(), None);
        for (id, place) in places {
            let file = &folder.files[place.file];
            let path = folder.root.join(&file.path);
            let block = files::read(&path, file.mode, place.offset, place.length)
                .map_err(failed(format!("{} cannot be read", path.display())))?;
            if BlockId::of(&block) != id {
                let sentence = format!("{} was changed during the upload", path.display());
                return Err(Failure::new(Kind::Failed, sentence).hint("run the command again"));
            }
            if part.is_full(block.len()) {
                self.send_part(&mut part, &mut bar)?;
            }
            part.add(&block, usize::from(last != Some(place.file)));
            last = Some(place.file);
        }
        let list = folder.list.levels().collect::<Vec<_>>().into_iter().rev().flatten();
        for block in list.filter(|block| missing.contains(&block.id)) {
            if part.is_full(block.content.len()) {
                self.send_part(&mut part, &mut bar)?;
            }
            part.add_list(&block.content);
        }
        self.send_part(&mut part, &mut bar)
    }

    /// Sends a part, and again when the connection is cut.
    fn send_part(&mut self, part: &mut PartWriter, bar: &mut Bar<'_>) -> Outcome {
        let Some(whole) = std::mem::replace(part, PartWriter::new()).finish()? else { return Ok(()) };
        bar.draw();
        self.sent += whole.body.len() as u64;
        let request = || {
            let path = "/deploy/application/source/blocks";
            self.server.post(path).bytes(whole.body.clone()).send()
        };
        retry_for(TIMEOUT, request, |failure| bar.print(&lost(failure)))?;
        bar.advance(whole.bytes, whole.files);
        Ok(())
    }
}

fn lost(failure: &Failure) -> String {
    format!("{}; trying again", visible(&failure.to_string()))
}
