-- exists
SELECT b.price
FROM bids [NOW] b
WHERE EXISTS (SELECT 1 FROM auctions [RANGE 5 SECONDS] a WHERE a.id = b.auction AND a.reserve < b.price);
SELECT b.price
FROM bids b
WHERE EXISTS (FROM auctions a WHERE a.id = b.auction AND a.reserve < b.price AND alive(a.ts, 5, b.ts));

-- not exists
SELECT b.price
FROM bids [NOW] b
WHERE NOT EXISTS (SELECT * FROM auctions [RANGE 5 SECONDS] a WHERE a.id = b.auction);
SELECT b.price FROM bids b WHERE NOT EXISTS (FROM auctions a WHERE a.id = b.auction AND alive(a.ts, 5, b.ts));

-- in
SELECT b.price
FROM bids [NOW] b
WHERE b.bidder IN (SELECT p.id FROM persons [RANGE 10 SECONDS] p WHERE p.name <> 'n1');
SELECT b.price
FROM bids b
WHERE b.bidder IN (SELECT p.id FROM persons p WHERE p.name <> 'n1' AND alive(p.ts, 10, b.ts));

-- not in nulls
SELECT b.price, b.bidder
FROM bids [NOW] b
WHERE b.bidder NOT IN (SELECT p.id FROM persons [RANGE 2 SECONDS] p);
SELECT b.price, b.bidder
FROM bids b
WHERE b.bidder NOT IN (SELECT p.id FROM persons p WHERE alive(p.ts, 2, b.ts));

-- not in notnull
SELECT b.price, b.bidder
FROM bids [NOW] b
WHERE b.bidder NOT IN (SELECT id FROM persons [RANGE 4 SECONDS] WHERE id IS NOT NULL);
SELECT b.price, b.bidder
FROM bids b
WHERE b.bidder NOT IN (SELECT p.id FROM persons p WHERE p.id IS NOT NULL AND alive(p.ts, 4, b.ts));

-- not in joined
SELECT b.price, a.id
FROM bids [RANGE 2 SECONDS] b
JOIN auctions [RANGE 4 SECONDS] a ON a.id = b.auction
WHERE b.bidder NOT IN (SELECT v.who FROM views [RANGE 3 SECONDS] v WHERE v.auction = a.id);
SELECT b.price, a.id
FROM bids b
JOIN auctions a ON a.id = b.auction AND overlap(b.ts, 2, a.ts, 4)
WHERE b.bidder NOT IN (SELECT v.who FROM views v WHERE v.auction = a.id AND alive(v.ts, 3, greatest(a.ts,
    b.ts)));

-- in pairs
SELECT b.price
FROM bids [NOW] b
WHERE (b.auction, b.bidder) NOT IN (SELECT v.auction, v.who FROM views [RANGE 3 SECONDS] v);
SELECT b.price
FROM bids b
WHERE NOT EXISTS (FROM views v WHERE alive(v.ts, 3, b.ts) AND (CASE WHEN v.auction <> b.auction OR v.who <>
    b.bidder THEN false ELSE true END));

-- exists twice
SELECT b.price
FROM bids [RANGE 2 SECONDS] b
WHERE EXISTS (SELECT 1 FROM auctions [RANGE 9 SECONDS] a WHERE a.id = b.auction) AND NOT EXISTS (SELECT 1 FROM
    views [RANGE 9 SECONDS] v WHERE v.who = b.bidder) AND b.price < 60;
SELECT b.price
FROM bids b
WHERE b.price < 60 AND EXISTS (FROM auctions a WHERE a.id = b.auction AND alive(a.ts, 9, b.ts)) AND NOT EXISTS
    (FROM views a WHERE a.who = b.bidder AND alive(a.ts, 9, b.ts));

-- except
SELECT auction, bidder FROM bids [NOW] EXCEPT SELECT auction, who FROM views [RANGE 7 SECONDS];
SELECT b.auction, b.bidder
FROM bids b
WHERE NOT EXISTS (FROM views v WHERE v.auction = b.auction AND v.who = b.bidder AND alive(v.ts, 7, b.ts));

-- struct exists
SELECT a.id FROM auctions [NOW] a WHERE a.category IN (SELECT p.address.zip FROM persons [RANGE 5 SECONDS] p);
SELECT a.id
FROM auctions a
WHERE a.category IN (SELECT p.address.zip FROM persons p WHERE alive(p.ts, 5, a.ts));

-- left+exists
SELECT a.id, b.price
FROM auctions [RANGE 3 SECONDS] a
LEFT JOIN bids [RANGE 1 SECOND] b ON b.auction = a.id
WHERE EXISTS (SELECT 1 FROM views [RANGE 4 SECONDS] v WHERE v.auction = a.id);
SELECT id, price
FROM (SELECT a.id, a.seller, a.category, b.price, b.bidder, CASE WHEN b.ts IS NULL THEN a.ts + INTERVAL 3 SECOND
    ELSE greatest(a.ts, b.ts) END t FROM auctions a LEFT JOIN bids b ON b.auction = a.id AND overlap(a.ts, 3,
    b.ts, 1)) j
WHERE EXISTS (FROM views v WHERE v.auction = j.id AND alive(v.ts, 4, j.t));

-- left+not in
SELECT a.id, b.price
FROM auctions [RANGE 3 SECONDS] a
LEFT JOIN bids [RANGE 1 SECOND] b ON b.auction = a.id
WHERE b.bidder NOT IN (SELECT who FROM views [RANGE 4 SECONDS] WHERE auction = a.id);
SELECT id, price
FROM (SELECT a.id, a.seller, a.category, b.price, b.bidder, CASE WHEN b.ts IS NULL THEN a.ts + INTERVAL 3 SECOND
    ELSE greatest(a.ts, b.ts) END t FROM auctions a LEFT JOIN bids b ON b.auction = a.id AND overlap(a.ts, 3,
    b.ts, 1)) j
WHERE bidder NOT IN (SELECT v.who FROM views v WHERE v.auction = j.id AND alive(v.ts, 4, j.t));

-- hop+exists
SELECT b.price, b.window_start
FROM bids [HOP 4 SECONDS SLIDE 2 SECONDS] b
WHERE EXISTS (SELECT 1 FROM views [RANGE 5 SECONDS] v WHERE v.auction = b.auction);
SELECT b.price, s
FROM hops(2)
JOIN bids b ON b.ts >= s AND b.ts < s + INTERVAL 4 SECOND
WHERE EXISTS (FROM views v WHERE v.auction = b.auction AND alive(v.ts, 5, b.ts));

-- except join
SELECT a.id, b.bidder
FROM auctions [RANGE 3 SECONDS] a, bids [RANGE 3 SECONDS] b
WHERE a.id = b.auction
EXCEPT
SELECT v.auction, v.who
FROM views [RANGE 9 SECONDS] v;
SELECT a.id, b.bidder
FROM auctions a, bids b
WHERE a.id = b.auction AND overlap(a.ts, 3, b.ts, 3) AND NOT EXISTS (FROM views v WHERE v.auction = a.id AND
    v.who = b.bidder AND alive(v.ts, 9, greatest(a.ts, b.ts)));

-- in within on
SELECT a.id, b.price
FROM auctions [RANGE 3 SECONDS] a
JOIN bids [RANGE 3 SECONDS] b ON a.id = b.auction AND b.bidder IN (SELECT v.who FROM views [RANGE 9 SECONDS] v);
SELECT a.id, b.price
FROM auctions a
JOIN bids b ON a.id = b.auction AND overlap(a.ts, 3, b.ts, 3)
WHERE b.bidder IN (SELECT v.who FROM views v WHERE alive(v.ts, 9, greatest(a.ts, b.ts)));

-- not in expr
SELECT a.id, a.seller
FROM auctions [NOW] a
WHERE a.seller + 0 NOT IN (SELECT p.id + 0 FROM persons [RANGE 1 SECONDS] p WHERE p.address.zip > 0);
SELECT a.id, a.seller
FROM auctions a
WHERE a.seller + 0 NOT IN (SELECT p.id + 0 FROM persons p WHERE p.address.zip > 0 AND alive(p.ts, 1, a.ts));
